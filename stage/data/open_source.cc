#include "stage/data/open_source.h"

#include <map>

#include "base/status.h"
#include "plan/job/data_kinds.h"

namespace stagecoach {
namespace {

using Opener = absl::StatusOr<std::unique_ptr<BatchSource>> (*)(const JobSpec&, const Network&,
                                                                std::span<const std::string>,
                                                                const DataRoots&, SourceLook);

const std::map<std::string, Opener>& Openers() {
#define STAGECOACH_ENTRY(Name) {std::string(Name##DataKind()->name()), &Open##Name##Source},
  static const auto* const openers =
      new std::map<std::string, Opener>{STAGECOACH_DATA_KINDS(STAGECOACH_ENTRY)};
#undef STAGECOACH_ENTRY
  return *openers;
}

}  // namespace

absl::StatusOr<std::unique_ptr<BatchSource>> OpenSource(const JobSpec& spec, const Network& network,
                                                        std::span<const std::string> reads,
                                                        const DataRoots& roots, SourceLook look) {
  RETURN_IF_ERROR(ValidateData(spec.data, network));
  return Openers().at(spec.data.kind)(spec, network, reads, roots, look);
}

}  // namespace stagecoach
