// The one list of the data sources: a line a kind. For KIND(Text), plan/data/text.cc defines `const DataKind*
// TextDataKind()` and stage/data/sources/text_source.cc OpenTextSource; the message is in proto/stagecoach/v1/data.proto.
#ifndef STAGECOACH_PLAN_JOB_DATA_KIND_LIST_H_
#define STAGECOACH_PLAN_JOB_DATA_KIND_LIST_H_

#define STAGECOACH_DATA_KINDS(KIND) \
  KIND(Cifar)                       \
  KIND(Idx)                         \
  KIND(ImageFolder)                 \
  KIND(MaskFolder)                  \
  KIND(Text)                        \
  KIND(WebDataset)

namespace stagecoach {

class DataKind;

#define STAGECOACH_DECLARE(Name) const DataKind* Name##DataKind();
STAGECOACH_DATA_KINDS(STAGECOACH_DECLARE)
#undef STAGECOACH_DECLARE

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_JOB_DATA_KIND_LIST_H_
