// The reader of data.webdataset (plan/data/webdataset.h). Shards are gone through when it is opened, by their headers and
// labels; pictures are read when they are needed.
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "plan/data/webdataset.h"
#include "stage/data/bad_records.h"
#include "stage/data/open_source.h"
#include "stage/data/picture_source.h"
#include "stage/data/shard_list.h"
#include "stage/pictures/decode.h"

namespace stagecoach {
namespace {

class ShardPictures final : public PictureSet {
 public:
  explicit ShardPictures(ShardList shards) : shards_(std::move(shards)) {}
  int64_t count() const override { return static_cast<int64_t>(shards_.records().size()); }
  int32_t label(int64_t i) const override {
    return shards_.records()[static_cast<size_t>(i)].label;
  }
  absl::StatusOr<Picture> Read(int64_t i, int64_t channels) const override {
    ASSIGN_OR_RETURN(const std::vector<uint8_t> file, shards_.Read(i));
    return Annotate(DecodePicture(file, channels), shards_.Where(i));
  }

 private:
  const ShardList shards_;
};

// Lists the folders of a job, one after the other, and sums up what identifies them.
class ShardReader {
 public:
  ShardReader(const WebDatasetData& data, const Network& network) : data_(data) {
    const WireId labels = network.InputNamed(kPictureLabels);
    classes_ = labels.valid() ? network.input(labels).classes : std::numeric_limits<int32_t>::max();
  }

  absl::StatusOr<std::shared_ptr<const PictureSet>> Open(const std::string& field,
                                                         const std::string& folder) {
    const bool skips = data_.on_bad_record == OnBadRecord::kSkip;
    ASSIGN_OR_RETURN(ShardList list,
                     ShardList::List(absl::StrCat("data.webdataset.", field), folder, classes_,
                                     [&](const absl::Status& reason) {
                                       if (!skips) return reason;
                                       bad_.Add(reason);
                                       return absl::OkStatus();
                                     }));
    digest_.Update(absl::StrCat(list.records().size(), "\n"));
    list.Sum(&digest_, &bytes_);
    std::shared_ptr<const PictureSet> set = std::make_shared<ShardPictures>(std::move(list));
    if (!skips) return set;
    return WithoutBadRecords(std::move(set), data_.pictures.decode_threads, &digest_, &bad_);
  }

  PictureSourceParts Parts(PictureSplits splits) {
    return {.splits = std::move(splits),
            .manifest = {.bytes = bytes_, .sha256 = digest_.Hex()},
            .note = bad_.Text(),
            .bad_records = bad_.count};
  }

 private:
  const WebDatasetData& data_;
  int64_t classes_ = 0;
  Sha256 digest_;
  int64_t bytes_ = 0;
  BadRecords bad_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<BatchSource>> OpenWebDatasetSource(
    const JobSpec& spec, const Network& network, std::span<const std::string> reads) {
  const auto data = spec.data.As<WebDatasetData>();
  ShardReader reader(data, network);
  std::shared_ptr<const PictureSet> train, test;
  ASSIGN_OR_RETURN(train, reader.Open("train", data.train));
  if (!data.test.empty()) {
    ASSIGN_OR_RETURN(test, reader.Open("test", data.test));
  }
  return MakePictureSource(spec, network, data.pictures, reads,
                           reader.Parts(SplitPictures(std::move(train), std::move(test))));
}

}  // namespace stagecoach
