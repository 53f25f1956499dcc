// The reader of data.idx (plan/data/idx.h). The images of a split are kept as bytes; each mini-batch's become numbers.
#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/hash.h"
#include "base/status.h"
#include "plan/data/idx.h"
#include "plan/saturate.h"
#include "stage/data/classes_text.h"
#include "stage/data/idx_file.h"
#include "stage/data/idx_weights.h"
#include "stage/data/open_source.h"
#include "stage/data/sample_order.h"

namespace stagecoach {
namespace {

constexpr char kImages[] = "images", kLabels[] = "labels", kWeights[] = "weights";

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

// Of a pixel's byte.
std::array<float, 256> PixelTable(const IdxData& data) {
  std::array<float, 256> table;
  for (int x = 0; x < 256; ++x) {
    table[x] = static_cast<float>((x / 255.0 - data.mean) / data.deviation);
  }
  return table;
}

class IdxSource final : public BatchSource {
 public:
  IdxSource(const JobSpec& spec, IdxSplit train, IdxSplit evaluation, DatasetManifest manifest)
      : order_(spec, train.count, evaluation.count),
        train_(std::move(train)),
        evaluation_(std::move(evaluation)),
        pixels_(PixelTable(spec.data.As<IdxData>())),
        manifest_(std::move(manifest)) {}

  const DatasetManifest& manifest() const override { return manifest_; }
  int64_t evaluation_batches() const override { return order_.evaluation_batches(); }

  absl::StatusOr<HostBatch> Train(uint64_t step, MicroBatchId micro_batch,
                                  std::span<const std::string> names) const override {
    return Gather(train_, order_.Train(step, micro_batch), names);
  }

  absl::StatusOr<HostBatch> Evaluation(uint64_t batch, MicroBatchId micro_batch,
                                       std::span<const std::string> names) const override {
    const SampleOrder::Range range = order_.Evaluation(batch, micro_batch);
    std::vector<int64_t> samples(static_cast<size_t>(range.count));
    for (int64_t i = 0; i < range.count; ++i) samples[static_cast<size_t>(i)] = range.first + i;
    return Gather(evaluation_, samples, names);
  }

 private:
  HostBatch Gather(const IdxSplit& split, const std::vector<int64_t>& samples,
                   std::span<const std::string> names) const {
    HostBatch batch{.samples = static_cast<int64_t>(samples.size()), .arrays = {}};
    if (samples.empty()) return batch;
    for (const std::string& name : names) {
      CHECK(name == kImages || name == kLabels || name == kWeights) << name;
      batch.arrays.push_back(name == kImages   ? Images(split, samples)
                             : name == kLabels ? Labels(split, samples)
                                               : Weights(split, samples));
    }
    return batch;
  }

  std::vector<std::byte> Images(const IdxSplit& split, const std::vector<int64_t>& samples) const {
    const IdxFile& file = split.pair->images;
    CHECK(!file.bytes.empty()) << "images were not asked for";
    const auto pixels = static_cast<size_t>(file.header.item_bytes());
    std::vector<std::byte> array(samples.size() * pixels * sizeof(float));
    std::byte* to = array.data();
    for (const int64_t sample : samples) {
      for (const uint8_t pixel : file.item(split.first + sample)) {
        std::memcpy(to, &pixels_[pixel], sizeof(float));
        to += sizeof(float);
      }
    }
    return array;
  }

  static std::vector<std::byte> Labels(const IdxSplit& split, const std::vector<int64_t>& samples) {
    const IdxFile& file = split.pair->labels;
    CHECK(!file.bytes.empty()) << "labels were not asked for";
    std::vector<std::byte> array(samples.size() * sizeof(int32_t));
    std::byte* to = array.data();
    for (const int64_t sample : samples) {
      const int32_t label = file.item(split.first + sample).front();
      std::memcpy(to, &label, sizeof(label));
      to += sizeof(label);
    }
    return array;
  }

  static std::vector<std::byte> Weights(const IdxSplit& split,
                                        const std::vector<int64_t>& samples) {
    const std::vector<float>& weights = split.pair->weights;
    std::vector<std::byte> array(samples.size() * sizeof(float));
    std::byte* to = array.data();
    for (const int64_t sample : samples) {
      const float weight =
          weights.empty() ? 1.0f : weights[static_cast<size_t>(split.first + sample)];
      std::memcpy(to, &weight, sizeof(weight));
      to += sizeof(weight);
    }
    return array;
  }

  const SampleOrder order_;
  const IdxSplit train_, evaluation_;
  const std::array<float, 256> pixels_;
  const DatasetManifest manifest_;
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
  Reader(const JobSpec& spec, const Network& network, std::span<const std::string> reads)
      : spec_(spec), network_(network), reads_(reads) {}

  absl::StatusOr<std::shared_ptr<IdxPair>> ReadPair(const std::string& prefix,
                                                    const std::string& images,
                                                    const std::string& labels) {
    auto made = std::make_shared<IdxPair>();
    IdxPair& pair = *made;
    ASSIGN_OR_RETURN(pair.images, Read(absl::StrCat("data.idx.", prefix, kImages), images,
                                       IdxContent::kImages, Reads(kImages)));
    RETURN_IF_ERROR(CheckIdxImages(pair.images.where, pair.images.header, spec_, network_));
    ASSIGN_OR_RETURN(pair.labels, Read(absl::StrCat("data.idx.", prefix, kLabels), labels,
                                       IdxContent::kLabels, Reads(kLabels)));
    if (pair.labels.header.count() != pair.count()) {
      return absl::InvalidArgumentError(absl::StrCat(
          pair.labels.where, ": ", pair.labels.header.count(), " labels for ", pair.count(),
          " images of ", pair.images.where, "; give files that belong together"));
    }
    if (const WireId id = network_.InputNamed(kLabels); Reads(kLabels)) {
      RETURN_IF_ERROR(CheckLabels(pair.labels, spec_, network_.input(id).classes));
    }
    return made;
  }

  // After all pairs.
  absl::Status ReadWeights(const std::string& prefix, const std::string& path, IdxPair* pair) {
    if (path.empty()) return absl::OkStatus();
    ASSIGN_OR_RETURN(const IdxFile file, Read(absl::StrCat("data.idx.", prefix, kWeights), path,
                                              IdxContent::kWeights, Reads(kWeights)));
    if (file.header.count() != pair->count()) {
      return absl::InvalidArgumentError(
          absl::StrCat(file.where, ": ", file.header.count(), " weights for ", pair->count(),
                       " images of ", pair->images.where, "; give files that belong together"));
    }
    if (!Reads(kWeights)) return absl::OkStatus();
    ASSIGN_OR_RETURN(pair->weights, IdxWeights(file));
    pair->weights_where = file.where;
    return absl::OkStatus();
  }

  DatasetManifest Manifest(int64_t train_samples, int64_t evaluation_samples) {
    return {.bytes = bytes_,
            .sha256 = digest_.Hex(),
            .train_samples = train_samples,
            .evaluation_samples = evaluation_samples};
  }

 private:
  bool Reads(const char* name) const {
    return std::find(reads_.begin(), reads_.end(), name) != reads_.end();
  }

  absl::StatusOr<IdxFile> Read(const std::string& field, const std::string& path,
                               IdxContent content, bool keep) {
    ASSIGN_OR_RETURN(IdxFile file, ReadIdxFile(field, path, content, keep, &digest_));
    bytes_ += file.stored_bytes;
    return file;
  }

  const JobSpec& spec_;
  const Network& network_;
  const std::span<const std::string> reads_;
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
  if (evaluation.count < 1 && spec.evaluation.every_steps > 0) {
    return refused("none to evaluate with", "test files, or evaluation.every_steps = 0");
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
  if (spec.evaluation.every_steps == 0) return absl::OkStatus();
  const int64_t read = SaturatingMultiply(spec.evaluation.batches, spec.training.batch_size);
  return CheckWeightsOf(evaluation, std::min(read, evaluation.count), "evaluate with");
}

}  // namespace

absl::StatusOr<std::unique_ptr<BatchSource>> OpenIdxSource(const JobSpec& spec,
                                                           const Network& network,
                                                           std::span<const std::string> reads) {
  const auto data = spec.data.As<IdxData>();
  Reader reader(spec, network, reads);
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
  DatasetManifest manifest = reader.Manifest(train.count, evaluation.count);
  return std::make_unique<IdxSource>(spec, std::move(train), std::move(evaluation),
                                     std::move(manifest));
}

}  // namespace stagecoach
