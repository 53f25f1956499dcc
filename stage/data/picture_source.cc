#include "stage/data/picture_source.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "base/status.h"
#include "plan/data_kinds.h"
#include "stage/data/picture_measure.h"
#include "stage/data/read_ahead.h"
#include "stage/data/sample_order.h"
#include "stage/pictures/augment.h"

namespace stagecoach {
namespace {

// What becomes of the pictures on this stage.
struct Form {
  Augmentation augmentation;
  int64_t channels = 0;  // 0: no images are read here
  std::vector<double> mean, deviation;

  size_t numbers() const {
    return static_cast<size_t>(augmentation.height * augmentation.width * channels);
  }
};

class PictureSource final : public BatchSource {
 public:
  PictureSource(const JobSpec& spec, const PictureFields& fields, Form form,
                PictureSourceParts parts)
      : seed_(spec.seed),
        micro_batches_(static_cast<uint64_t>(spec.training.micro_batches)),
        order_(spec, parts.splits.train->count(), parts.splits.evaluation->count()),
        form_(std::move(form)),
        numbers_(form_.mean, form_.deviation),
        parts_(std::move(parts)) {
    if (form_.channels == 0) return;
    read_ahead_ = std::make_unique<ReadAhead>(
        ReadAhead::Options{.threads = static_cast<int>(fields.decode_threads),
                           .image_bytes = form_.numbers() * sizeof(float),
                           .ahead = static_cast<size_t>(micro_batches_) + 1},
        [this](bool training, uint64_t n) { return ItemsOf(training, n); },
        [this](const ReadAhead::Item& item, std::span<std::byte> image) {
          return MakeImage(item, image);
        });
  }

  const DatasetManifest& manifest() const override { return parts_.manifest; }
  int64_t evaluation_batches() const override { return order_.evaluation_batches(); }
  std::string note() const override { return parts_.note; }
  int64_t bad_records() const override { return parts_.bad_records; }

  absl::StatusOr<HostBatch> Train(uint64_t step, MicroBatchId micro_batch,
                                  std::span<const std::string> names) const override {
    return Gather(true, step, micro_batch, names);
  }
  absl::StatusOr<HostBatch> Evaluation(uint64_t batch, MicroBatchId micro_batch,
                                       std::span<const std::string> names) const override {
    return Gather(false, batch, micro_batch, names);
  }

 private:
  const PictureSet& SetOf(bool training) const {
    return training ? *parts_.splits.train : *parts_.splits.evaluation;
  }

  // Micro-batch n of training, or of an evaluation.
  std::vector<ReadAhead::Item> ItemsOf(bool training, uint64_t n) const {
    const uint64_t batch = n / micro_batches_;
    const MicroBatchId micro_batch(static_cast<int32_t>(n % micro_batches_));
    std::vector<ReadAhead::Item> items;
    if (training) {
      for (const SampleOrder::Place& place : order_.TrainPlaces(batch, micro_batch)) {
        items.push_back({.training = true, .epoch = place.epoch, .sample = place.sample});
      }
      return items;
    }
    if (batch >= static_cast<uint64_t>(order_.evaluation_batches())) return items;
    const SampleOrder::Range range = order_.Evaluation(batch, micro_batch);
    for (int64_t i = 0; i < range.count; ++i) items.push_back({.sample = range.first + i});
    return items;
  }

  absl::StatusOr<HostBatch> Gather(bool training, uint64_t batch, MicroBatchId micro_batch,
                                   std::span<const std::string> names) const {
    const uint64_t n = batch * micro_batches_ + static_cast<uint64_t>(micro_batch.value);
    const std::vector<ReadAhead::Item> items = ItemsOf(training, n);
    HostBatch result{.samples = static_cast<int64_t>(items.size()), .arrays = {}};
    if (items.empty()) return result;
    for (const std::string& name : names) {
      CHECK(name == kPictureImages || name == kPictureLabels) << name;
      if (name == kPictureImages) {
        CHECK(read_ahead_ != nullptr) << "images were not asked for";
        ASSIGN_OR_RETURN(std::vector<std::byte> images, read_ahead_->Take(training, n));
        result.arrays.push_back(std::move(images));
      } else {
        result.arrays.push_back(Labels(SetOf(training), items));
      }
    }
    return result;
  }

  static std::vector<std::byte> Labels(const PictureSet& set,
                                       const std::vector<ReadAhead::Item>& items) {
    std::vector<std::byte> array(items.size() * sizeof(int32_t));
    for (size_t i = 0; i < items.size(); ++i) {
      const int32_t label = set.label(items[i].sample);
      std::memcpy(array.data() + i * sizeof(label), &label, sizeof(label));
    }
    return array;
  }

  // Any thread.
  absl::Status MakeImage(const ReadAhead::Item& item, std::span<std::byte> image) const {
    ASSIGN_OR_RETURN(const Picture read, SetOf(item.training).Read(item.sample, form_.channels));
    const SampleDraws draws(seed_, item.epoch, static_cast<uint64_t>(item.sample));
    const Picture picture = item.training ? Augment(read, form_.augmentation, draws)
                                          : FitPicture(read, form_.augmentation);
    // An array of its own is as aligned as any.
    const std::span numbers(reinterpret_cast<float*>(image.data()), image.size() / sizeof(float));
    numbers_.Convert(picture, numbers);
    if (item.training) CutOut(form_.augmentation, draws, form_.channels, numbers);
    return absl::OkStatus();
  }

  const uint64_t seed_, micro_batches_;
  const SampleOrder order_;
  const Form form_;
  const PixelNumbers numbers_;
  const PictureSourceParts parts_;
  std::unique_ptr<ReadAhead>
      read_ahead_;  // last: its threads use all of the above; null: no images
};

// One for all channels, or one each.
std::vector<double> ByChannel(const std::vector<double>& given, int64_t channels, double usual) {
  if (given.size() > 1) return given;
  return std::vector<double>(static_cast<size_t>(channels), given.empty() ? usual : given.front());
}

absl::StatusOr<Form> FormOf(const Network& network, const PictureFields& fields,
                            const PictureSet& train, std::string* note) {
  const Shape& image = network.wire(network.InputNamed(kPictureImages)).type.shape;
  Form form{.augmentation = {.height = image[0],
                             .width = image[1],
                             .shorter_side = fields.shorter_side,
                             .least_area = fields.random_area,
                             .padding = fields.padding,
                             .flip = fields.flip,
                             .brightness = fields.brightness,
                             .contrast = fields.contrast,
                             .saturation = fields.saturation,
                             .cutout = fields.cutout},
            .channels = image[2],
            .mean = ByChannel(fields.mean, image[2], 0),
            .deviation = ByChannel(fields.deviation, image[2], 1)};
  if (!fields.measure) return form;
  ASSIGN_OR_RETURN(PixelMoments moments,
                   MeasurePictures(train, form.augmentation, form.channels, fields.decode_threads));
  form.mean = std::move(moments.mean);
  form.deviation = std::move(moments.deviation);
  const auto number = [](std::string* out, double x) { absl::StrAppendFormat(out, "%.6g", x); };
  absl::StrAppend(note, note->empty() ? "" : "; ", "measured mean [",
                  absl::StrJoin(form.mean, ", ", number), "] and deviation [",
                  absl::StrJoin(form.deviation, ", ", number), "]");
  return form;
}

absl::Status CheckCounts(const JobSpec& spec, const PictureSplits& splits) {
  const auto refused = [&spec](const char* what, const char* remedy) {
    return absl::InvalidArgumentError(
        absl::StrCat(DataFilesText(spec.data), ": ", what, "; give more pictures, or ", remedy));
  };
  if (splits.train->count() < 1) return refused("no picture to train on", "a part to test with");
  if (splits.evaluation->count() < 1 && spec.evaluation.every_steps > 0) {
    return refused("no picture to evaluate with",
                   "a part to test with, or evaluation.every_steps = 0");
  }
  return absl::OkStatus();
}

}  // namespace

bool ReadsImages(std::span<const std::string> reads) {
  return std::find(reads.begin(), reads.end(), kPictureImages) != reads.end();
}

absl::StatusOr<std::unique_ptr<BatchSource>> MakePictureSource(const JobSpec& spec,
                                                               const Network& network,
                                                               const PictureFields& fields,
                                                               std::span<const std::string> reads,
                                                               PictureSourceParts parts) {
  RETURN_IF_ERROR(CheckCounts(spec, parts.splits));
  parts.manifest.train_samples = parts.splits.train->count();
  parts.manifest.evaluation_samples = parts.splits.evaluation->count();
  Form form;
  if (ReadsImages(reads)) {
    ASSIGN_OR_RETURN(form, FormOf(network, fields, *parts.splits.train, &parts.note));
  }
  return std::make_unique<PictureSource>(spec, fields, std::move(form), std::move(parts));
}

}  // namespace stagecoach
