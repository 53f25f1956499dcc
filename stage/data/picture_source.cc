#include "stage/data/picture_source.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/errors/check.h"
#include "base/errors/status.h"
#include "plan/job/data_kinds.h"
#include "plan/job/held_out.h"
#include "stage/data/picture_form.h"
#include "stage/data/picture_measure.h"
#include "stage/data/read_ahead.h"
#include "stage/data/sample_order.h"
#include "stage/pictures/augment.h"
#include "stage/pictures/encode.h"
#include "stage/pictures/resample.h"

namespace stagecoach {
namespace {

constexpr int64_t kCheckedFirst = 8;
constexpr size_t kMostFoundClasses = 12;

// What becomes of the pictures on this stage.
struct Form : PictureForm {
  bool images = false, masks = false, labels = false;  // are they read here?
};

// How many there are of each class, up to the last that occurs.
std::vector<int64_t> CountLabels(const PictureSplits& splits) {
  std::vector<int64_t> counts;
  for (const PictureSet* const set : {splits.train.get(), splits.evaluation.get()}) {
    for (int64_t i = 0; i < set->count(); ++i) {
      const auto label = static_cast<size_t>(set->label(i));
      if (label >= counts.size()) counts.resize(label + 1);
      ++counts[label];
    }
  }
  return counts;
}

// A small PNG file for people to look at. Empty: there was no memory.
std::string ShownPicture(const Picture& picture) {
  const int64_t longer = std::max(picture.height, picture.width);
  const auto shown = [longer](int64_t side) {
    return longer <= kShownSide ? side : std::max<int64_t>(1, side * kShownSide / longer);
  };
  const PictureBox whole{.height = picture.height, .width = picture.width};
  const auto file =
      EncodePng(Resample(picture, whole, shown(picture.height), shown(picture.width)));
  return file.ok() ? std::string(file->begin(), file->end()) : "";
}

class PictureSource final : public BatchSource {
 public:
  PictureSource(const JobSpec& spec, const PictureFields& fields, Form form,
                PictureSourceParts parts)
      : seed_(spec.seed),
        decode_threads_(fields.decode_threads),
        micro_batches_(static_cast<uint64_t>(spec.training.micro_batches)),
        order_(spec, parts.splits.train->count(), parts.splits.evaluation->count()),
        form_(std::move(form)),
        numbers_(form_.mean, form_.deviation),
        parts_(std::move(parts)) {
    if (form_.images) {
      read_ahead_ =
          MakeReadAhead(fields, form_.numbers() * sizeof(float), &PictureSource::MakeImage);
    }
    if (form_.masks) {
      masks_ahead_ =
          MakeReadAhead(fields, form_.pixels() * sizeof(int32_t), &PictureSource::MakeMask);
    }
  }

  const DatasetManifest& manifest() const override { return parts_.manifest; }
  int64_t evaluation_batches() const override { return order_.evaluation_batches(); }
  std::vector<std::string> notes() const override { return parts_.notes; }
  std::string Found() const override;
  absl::Status CheckFirst() const override {
    const PictureSet& set = *parts_.splits.train;
    if (parts_.skips_bad_records) return absl::OkStatus();  // they are no reason to refuse
    return ForEachPicture(0, std::min(set.count(), kCheckedFirst),
                          [&set](int64_t i) { return set.Check(i); });
  }
  DataFacts facts() const override { return parts_.facts; }
  int64_t bad_records() const override { return parts_.bad_records; }
  std::vector<std::string> Shown() const override {
    const PictureSet& set = *parts_.splits.evaluation;
    const bool shows = form_.images && (form_.channels == 1 || form_.channels == 3);
    const int64_t count = shows ? std::min(set.count(), kShownPictures) : 0;
    std::vector<std::string> shown(static_cast<size_t>(count));
    const auto show = [&](int64_t i) {
      const absl::StatusOr<Picture> read = set.Read(i, form_.channels);
      if (read.ok()) {
        shown[static_cast<size_t>(i)] = ShownPicture(FitPicture(*read, form_.augmentation));
      }
      return absl::OkStatus();
    };
    CHECK_OK(ForEachPicture(decode_threads_, count, show));
    return shown;
  }

  absl::StatusOr<HostBatch> Train(uint64_t step, MicroBatchId micro_batch,
                                  std::span<const std::string> names) const override {
    return Gather(true, step, micro_batch, names);
  }
  absl::StatusOr<HostBatch> Evaluation(uint64_t batch, MicroBatchId micro_batch,
                                       std::span<const std::string> names) const override {
    return Gather(false, batch, micro_batch, names);
  }

 private:
  using Maker = absl::Status (PictureSource::*)(const ReadAhead::Item&, std::span<std::byte>) const;
  std::unique_ptr<ReadAhead> MakeReadAhead(const PictureFields& fields, size_t bytes, Maker maker) {
    return std::make_unique<ReadAhead>(
        ReadAhead::Options{.threads = static_cast<int>(fields.decode_threads),
                           .image_bytes = bytes,
                           .ahead = static_cast<size_t>(micro_batches_) + 1},
        [this](bool training, uint64_t n) { return ItemsOf(training, n); },
        [this, maker](const ReadAhead::Item& item, std::span<std::byte> image) {
          return (this->*maker)(item, image);
        });
  }

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
      ASSIGN_OR_RETURN(std::vector<std::byte> array, ArrayOf(name, training, n, items));
      result.arrays.push_back(std::move(array));
    }
    return result;
  }

  // Of micro-batch n.
  absl::StatusOr<std::vector<std::byte>> ArrayOf(const std::string& name, bool training, uint64_t n,
                                                 const std::vector<ReadAhead::Item>& items) const {
    const PictureSet& set = SetOf(training);
    if (name == kPictureLabels) {
      return NumberEach(items, [&set](int64_t i) { return set.label(i); });
    }
    if (name == kPictureWeights) {
      return NumberEach(items, [&set](int64_t i) { return set.weight(i); });
    }
    CHECK(name == kPictureImages || name == kPictureMasks) << name;
    ReadAhead* const ahead = (name == kPictureImages ? read_ahead_ : masks_ahead_).get();
    CHECK(ahead != nullptr) << name << " were not asked for";
    return ahead->Take(training, n);
  }

  template <typename Number>
  static std::vector<std::byte> NumberEach(const std::vector<ReadAhead::Item>& items,
                                           const Number& number_of) {
    using T = decltype(number_of(0));
    std::vector<std::byte> array(items.size() * sizeof(T));
    for (size_t i = 0; i < items.size(); ++i) {
      const T number = number_of(items[i].sample);
      std::memcpy(array.data() + i * sizeof(T), &number, sizeof(T));
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

  // Any thread.
  absl::Status MakeMask(const ReadAhead::Item& item, std::span<std::byte> ids) const {
    ASSIGN_OR_RETURN(const Picture read, SetOf(item.training).ReadMask(item.sample));
    const SampleDraws draws(seed_, item.epoch, static_cast<uint64_t>(item.sample));
    const Picture mask = item.training
                             ? AugmentMask(read, form_.augmentation, parts_.mask_border, draws)
                             : FitMask(read, form_.augmentation);
    CHECK_EQ(ids.size(), mask.bytes.size() * sizeof(int32_t));
    for (size_t i = 0; i < mask.bytes.size(); ++i) {
      const int32_t id = mask.bytes[i];
      std::memcpy(ids.data() + i * sizeof(id), &id, sizeof(id));
    }
    return absl::OkStatus();
  }

  const uint64_t seed_;
  const int64_t decode_threads_;
  const uint64_t micro_batches_;
  const SampleOrder order_;
  const Form form_;
  const PixelNumbers numbers_;
  const PictureSourceParts parts_;
  // Last: their threads use all of the above; null: no images, no masks.
  std::unique_ptr<ReadAhead> read_ahead_, masks_ahead_;
};

std::string PictureSource::Found() const {
  const int64_t held_out = parts_.splits.evaluation->count();
  std::string text = absl::StrCat(parts_.splits.train->count() + held_out, " pictures");
  if (form_.masks) absl::StrAppend(&text, " with masks");
  if (form_.labels) {
    const std::vector<int64_t> counts = CountLabels(parts_.splits);
    std::vector<std::string> classes;
    for (size_t i = 0; i < std::min(counts.size(), kMostFoundClasses); ++i) {
      const std::vector<std::string>& names = parts_.facts.classes;
      classes.push_back(
          absl::StrCat(i < names.size() ? names[i] : absl::StrCat(i), " ", counts[i]));
    }
    if (counts.size() > kMostFoundClasses) {
      classes.push_back(absl::StrCat("and ", counts.size() - kMostFoundClasses, " more"));
    }
    absl::StrAppend(&text, " in ", counts.size(), counts.size() == 1 ? " class (" : " classes (",
                    absl::StrJoin(classes, ", "), ")");
  }
  return absl::StrCat(text, ", ", held_out, " held out");
}

absl::Status MeasureForm(const PictureFields& fields, Form* formed, PictureSourceParts* parts) {
  Form& form = *formed;
  ASSIGN_OR_RETURN(PixelMoments moments, MeasurePictures(*parts->splits.train, form.augmentation,
                                                         form.channels, fields.decode_threads));
  parts->facts.mean = form.mean = std::move(moments.mean);
  parts->facts.deviation = form.deviation = std::move(moments.deviation);
  const auto number = [](std::string* out, double x) { absl::StrAppendFormat(out, "%.6g", x); };
  parts->notes.push_back(absl::StrCat("measured mean [", absl::StrJoin(form.mean, ", ", number),
                                      "] and deviation [",
                                      absl::StrJoin(form.deviation, ", ", number), "]"));
  return absl::OkStatus();
}

// A network with more classes than the data trains outputs that nothing ever asks for: mostly a
// mistake.
void NoteClasses(const JobSpec& spec, int64_t classes, PictureSourceParts* parts) {
  const auto there = static_cast<int64_t>(CountLabels(parts->splits).size());
  if (there >= classes) return;
  parts->notes.push_back(absl::StrCat(DataFilesText(spec.data), ": ", there,
                                      there == 1 ? " class" : " classes", ", and the network has ",
                                      classes));
}

absl::Status CheckCounts(const JobSpec& spec, const PictureSourceParts& parts) {
  const PictureSplits& splits = parts.splits;
  const auto refused = [&](const char* what, const char* remedy) {
    const std::string where = absl::StrCat(DataFilesText(spec.data), ": ", what);
    if (parts.bad_records > 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(where, ": ", parts.bad_records,
                       " bad records were left out, the first: ", parts.first_bad));
    }
    return absl::InvalidArgumentError(absl::StrCat(where, "; give more pictures, or ", remedy));
  };
  if (splits.train->count() < 1) return refused("no picture to train on", "a part to test with");
  if (splits.evaluation->count() < 1 && spec.evaluation.given()) {
    return refused(
        "no picture to evaluate with",
        "a part to test with, or no evaluation (evaluation.every_steps, evaluation.every_epochs)");
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
  RETURN_IF_ERROR(CheckCounts(spec, parts));
  parts.manifest.train_samples = parts.splits.train->count();
  parts.manifest.evaluation_samples = parts.splits.evaluation->count();
  Form form;
  const bool images = ReadsImages(reads);
  const bool labels = std::find(reads.begin(), reads.end(), kPictureLabels) != reads.end();
  if (labels) NoteClasses(spec, network.input(network.InputNamed(kPictureLabels)).classes, &parts);
  const bool masks = std::find(reads.begin(), reads.end(), kPictureMasks) != reads.end();
  if (images || masks) {
    const WireId read = network.InputNamed(images ? kPictureImages : kPictureMasks);
    form = {FormOfPictures(fields, network.wire(read).type.shape), images, masks, labels};
  }
  form.labels = labels;
  if (form.images && fields.measure) RETURN_IF_ERROR(MeasureForm(fields, &form, &parts));
  return std::make_unique<PictureSource>(spec, fields, std::move(form), std::move(parts));
}

}  // namespace stagecoach
