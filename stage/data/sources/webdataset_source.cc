// The reader of data.webdataset (plan/data/webdataset.h). Shards are gone through when it is
// opened, by their headers and labels; pictures are read when they are needed.
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "plan/data/webdataset.h"
#include "stage/data/formats/shard_list.h"
#include "stage/data/listed_pictures.h"
#include "stage/data/open_source.h"
#include "stage/data/picture_source.h"

namespace stagecoach {
absl::StatusOr<std::unique_ptr<BatchSource>> WebDatasetDataSource(
    const JobSpec& spec, const Network& network, std::span<const std::string> reads,
    const DataRoots& roots, SourceLook look) {
  const auto data = spec.data.As<WebDatasetData>();
  const WireId labels = network.InputNamed(kPictureLabels);
  const int64_t classes =
      labels.valid() ? network.input(labels).classes : std::numeric_limits<int32_t>::max();
  PictureLists lists(data.on_bad_record, data.pictures, look);
  const auto open =
      [&](const char* field,
          const std::string& folder) -> absl::StatusOr<std::shared_ptr<const PictureSet>> {
    ASSIGN_OR_RETURN(
        ShardList shards,
        ShardList::List(roots, absl::StrCat("data.webdataset.", field), folder, classes,
                        [&](const absl::Status& reason) { return lists.Bad(reason); }));
    return lists.Add(std::move(shards));
  };
  std::shared_ptr<const PictureSet> train, test;
  ASSIGN_OR_RETURN(train, open("train", data.train));
  if (!data.test.empty()) {
    ASSIGN_OR_RETURN(test, open("test", data.test));
  }
  return MakePictureSource(spec, network, data.pictures, reads,
                           lists.Parts(SplitPictures(std::move(train), std::move(test))));
}

}  // namespace stagecoach
