// The reader of data.idx (plan/data/idx.h). Each mini-batch's images become numbers.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/errors/status.h"
#include "base/files/hash.h"
#include "base/numbers/saturate.h"
#include "plan/data/idx.h"
#include "stage/data/formats/classes_text.h"
#include "stage/data/formats/idx_file.h"
#include "stage/data/open_source.h"
#include "stage/data/picture_source.h"
#include "stage/data/sources/idx_weights.h"

namespace stagecoach {
namespace {

// Images with their labels and weights.
struct IdxPair {
  IdxFile images, labels;
  std::vector<float> weights;  // empty: 1 each, or not asked for
  std::string weights_where;   // their file, for errors
  int64_t count() const { return images.header.count(); }
};

// Samples [first, first + count) of a pair.
struct IdxSplit {
  std::shared_ptr<const IdxPair> pair;
  int64_t first = 0, count = 0;
};

class IdxPictures final : public PictureSet {
 public:
  explicit IdxPictures(IdxSplit split) : split_(std::move(split)) {}
  int64_t count() const override { return split_.count; }
  int32_t label(int64_t i) const override {
    const IdxFile& file = split_.pair->labels;
    CHECK(!file.bytes.empty()) << "labels were not asked for";
    return file.item(split_.first + i).front();
  }
  float weight(int64_t i) const override {
    const std::vector<float>& weights = split_.pair->weights;
    return weights.empty() ? 1.0F : weights[static_cast<size_t>(split_.first + i)];
  }
  absl::Status Check(int64_t) const override { return absl::OkStatus(); }  // read already
  // With the channels that the file has: CheckIdxImages has found them to be the network's.
  absl::StatusOr<Picture> Read(int64_t i, int64_t channels) const override {
    const IdxFile& file = split_.pair->images;
    const Shape image = file.header.image();
    CHECK_EQ(image[2], channels);
    Picture picture(image[0], image[1], image[2]);
    RETURN_IF_ERROR(file.ReadItem(split_.first + i, picture.bytes));
    return picture;
  }

 private:
  const IdxSplit split_;
};

absl::Status CheckLabels(const IdxFile& file, const JobSpec& spec, int64_t classes) {
  const auto first = file.bytes.begin() + file.header.header_bytes();
  const auto at = std::find_if(first, file.bytes.end(),
                               [classes](uint8_t label) { return int64_t{label} >= classes; });
  if (at == file.bytes.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      file.where, ": label ", int{*at}, " of sample ", at - first, " is not below ",
      ClassesText(spec, classes), "; give labels from 0 to ", classes - 1,
      " or a network of at least ", int{*std::max_element(at, file.bytes.end())} + 1, " classes"));
}

// Reads the files of a job in the order of the fields, and sums up what identifies them.
class Reader {
 public:
  Reader(const JobSpec& spec, const Network& network, std::span<const std::string> reads,
         const DataRoots& roots)
      : spec_(spec), network_(network), reads_(reads), roots_(roots) {}

  absl::StatusOr<std::shared_ptr<IdxPair>> ReadPair(const std::string& prefix,
                                                    const std::string& images,
                                                    const std::string& labels) {
    auto made = std::make_shared<IdxPair>();
    IdxPair& pair = *made;
    ASSIGN_OR_RETURN(pair.images, Read(absl::StrCat("data.idx.", prefix, kPictureImages), images,
                                       IdxContent::kImages, Reads(kPictureImages)));
    RETURN_IF_ERROR(CheckIdxImages(pair.images.where, pair.images.header, spec_, network_));
    ASSIGN_OR_RETURN(pair.labels, Read(absl::StrCat("data.idx.", prefix, kPictureLabels), labels,
                                       IdxContent::kLabels, Reads(kPictureLabels)));
    if (pair.labels.header.count() != pair.count()) {
      return absl::InvalidArgumentError(absl::StrCat(
          pair.labels.where, ": ", pair.labels.header.count(), " labels for ", pair.count(),
          " images of ", pair.images.where, "; give files that belong together"));
    }
    if (const WireId id = network_.InputNamed(kPictureLabels); Reads(kPictureLabels)) {
      RETURN_IF_ERROR(CheckLabels(pair.labels, spec_, network_.input(id).classes));
    }
    return made;
  }

  // After all pairs.
  absl::Status ReadWeights(const std::string& prefix, const std::string& path, IdxPair* pair) {
    if (path.empty()) return absl::OkStatus();
    ASSIGN_OR_RETURN(const IdxFile file, Read(absl::StrCat("data.idx.", prefix, kPictureWeights),
                                              path, IdxContent::kWeights, Reads(kPictureWeights)));
    if (file.header.count() != pair->count()) {
      return absl::InvalidArgumentError(
          absl::StrCat(file.where, ": ", file.header.count(), " weights for ", pair->count(),
                       " images of ", pair->images.where, "; give files that belong together"));
    }
    if (!Reads(kPictureWeights)) return absl::OkStatus();
    ASSIGN_OR_RETURN(pair->weights, IdxWeights(file));
    pair->weights_where = file.where;
    return absl::OkStatus();
  }

  DatasetManifest Manifest() { return {.bytes = bytes_, .sha256 = digest_.Hex()}; }

 private:
  bool Reads(const char* name) const {
    return std::find(reads_.begin(), reads_.end(), name) != reads_.end();
  }

  absl::StatusOr<IdxFile> Read(const std::string& field, const std::string& path,
                               IdxContent content, bool keep) {
    ASSIGN_OR_RETURN(IdxFile file, ReadIdxFile(roots_, field, path, content, keep, &digest_));
    bytes_ += file.stored_bytes;
    return file;
  }

  const JobSpec& spec_;
  const Network& network_;
  const std::span<const std::string> reads_;
  const DataRoots& roots_;
  Sha256 digest_;
  int64_t bytes_ = 0;
};

// Without test files: the last 10 % are held out.
int64_t TrainShare(int64_t samples) { return samples / 10 * 9 + samples % 10 * 9 / 10; }

absl::Status CheckSplits(const IdxSplit& train, const IdxSplit& evaluation, const JobSpec& spec) {
  const auto refused = [&train](const char* what, const char* remedy) {
    return absl::InvalidArgumentError(absl::StrCat(train.pair->images.where, ": ",
                                                   train.pair->count(), " images, ", what,
                                                   "; give more images, or ", remedy));
  };
  if (train.count < 1) return refused("none to train on with 10 % held out", "test files");
  if (evaluation.count < 1 && spec.evaluation.given()) {
    return refused(
        "none to evaluate with",
        "test files, or no evaluation (evaluation.every_steps, evaluation.every_epochs)");
  }
  return absl::OkStatus();
}

// Of the first `count` images of the split.
absl::Status CheckWeightsOf(const IdxSplit& split, int64_t count, const std::string& what) {
  const std::vector<float>& all = split.pair->weights;
  if (all.empty() || count == 0) return absl::OkStatus();
  return CheckSomeWeight(
      split.pair->weights_where,
      std::span(all).subspan(static_cast<size_t>(split.first), static_cast<size_t>(count)), what);
}

// An evaluation that weighs nothing would have no loss.
absl::Status CheckWeights(const IdxSplit& train, const IdxSplit& evaluation, const JobSpec& spec) {
  RETURN_IF_ERROR(CheckWeightsOf(train, train.count, "train on"));
  if (!spec.evaluation.given()) return absl::OkStatus();
  const int64_t read = SaturatingMultiply(spec.evaluation.batches, spec.training.batch_size);
  return CheckWeightsOf(evaluation, std::min(read, evaluation.count), "evaluate with");
}

}  // namespace

absl::StatusOr<std::unique_ptr<BatchSource>> IdxDataSource(const JobSpec& spec,
                                                           const Network& network,
                                                           std::span<const std::string> reads,
                                                           const DataRoots& roots, SourceLook) {
  const auto data = spec.data.As<IdxData>();
  Reader reader(spec, network, reads, roots);
  IdxSplit train, evaluation;
  ASSIGN_OR_RETURN(const std::shared_ptr<IdxPair> pair,
                   reader.ReadPair("", data.images, data.labels));
  std::shared_ptr<IdxPair> test_pair = pair;
  train.pair = pair;
  if (data.test_images.empty()) {
    train.count = evaluation.first = TrainShare(train.pair->count());
    evaluation.count = train.pair->count() - train.count;
  } else {
    ASSIGN_OR_RETURN(test_pair, reader.ReadPair("test_", data.test_images, data.test_labels));
    train.count = train.pair->count();
    evaluation.count = test_pair->count();
  }
  evaluation.pair = test_pair;
  RETURN_IF_ERROR(CheckSplits(train, evaluation, spec));
  RETURN_IF_ERROR(reader.ReadWeights("", data.weights, pair.get()));
  RETURN_IF_ERROR(reader.ReadWeights("test_", data.test_weights, test_pair.get()));
  RETURN_IF_ERROR(CheckWeights(train, evaluation, spec));
  PictureFields fields = data.pictures;
  fields.mean = {data.mean};
  fields.deviation = {data.deviation};
  PictureSourceParts parts{
      .splits = {.train = std::make_shared<IdxPictures>(std::move(train)),
                 .evaluation = std::make_shared<IdxPictures>(std::move(evaluation))},
      .manifest = reader.Manifest()};
  return MakePictureSource(spec, network, fields, reads, std::move(parts));
}

}  // namespace stagecoach
