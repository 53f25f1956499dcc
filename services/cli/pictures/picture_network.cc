#include "services/cli/pictures/picture_network.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/errors/field_check.h"
#include "base/errors/status.h"
#include "network/network_kinds.h"
#include "plan/job/data_kinds.h"
#include "stage/data/picture_source.h"

namespace stagecoach {
namespace {

// A batch has so many numbers at most, but for one picture that is larger.
constexpr size_t kBatchNumbers = size_t{1} << 20;
constexpr size_t kMostBatch = 16;

absl::Status NotUsable(const JobSpec& spec, const std::string& why) {
  return FieldError("model", spec.network.kind, why);
}

absl::Status CheckReadsImages(const JobSpec& spec, const Network& network) {
  if (network.InputNamed("tokens").valid()) {
    return NotUsable(spec, "reads a text, not pictures: `stagecoach generate` writes text with it");
  }
  const CellWires wires = WiresOfCell(network, 0, static_cast<int>(network.layers.size()));
  const WireId images = network.InputNamed(kPictureImages);
  if (!images.valid() || wires.loaded != std::vector{images}) {
    return NotUsable(spec, "reads something else than images");
  }
  const Shape& shape = network.wire(images).type.shape;
  if (shape.rank() == 3 && (shape[2] == 1 || shape[2] == 3)) return absl::OkStatus();
  return NotUsable(spec, absl::StrCat("reads images ", shape.ToString(),
                                      ": pictures have 1 channel (grey) or 3 (colours)"));
}

absl::Status CheckAnswer(const JobSpec& spec, const Network& network, PictureAnswer wanted) {
  const Objective& objective = network.objective;
  if (objective.target_type.element != Element::kIds) {
    return NotUsable(spec, "was trained to give numbers, not classes");
  }
  const Shape& targets = objective.target_type.shape;
  const Shape& image = network.wire(network.InputNamed(kPictureImages)).type.shape;
  if (targets.elements() == 1) {
    if (wanted == PictureAnswer::kClass) return absl::OkStatus();
    return NotUsable(spec, "gives one class for a whole picture: use `stagecoach classify`");
  }
  if (targets.rank() == 2 && targets[0] == image[0] && targets[1] == image[1]) {
    if (wanted == PictureAnswer::kClassOfEachPixel) return absl::OkStatus();
    return NotUsable(spec, "gives a class for each pixel: use `stagecoach segment`");
  }
  return NotUsable(spec, absl::StrCat("gives classes for ", targets.ToString(),
                                      ", neither one for a picture nor one for each pixel"));
}

absl::StatusOr<PictureForm> FormOf(const JobSpec& spec, const Network& network,
                                   const DataFacts& facts) {
  const std::optional<PictureFields> fields = DataKinds().Named(spec.data.kind).Pictures(spec.data);
  if (!fields.has_value()) {
    return FieldError("data", spec.data.kind,
                      "gives no pictures, so it is not known what becomes of one");
  }
  PictureForm form =
      FormOfPictures(*fields, network.wire(network.InputNamed(kPictureImages)).type.shape);
  if (!fields->measure) return form;
  const auto channels = static_cast<size_t>(form.channels);
  if (facts.mean.size() != channels || facts.deviation.size() != channels) {
    return absl::NotFoundError(absl::StrCat(
        "data.", spec.data.kind,
        ".measure: the mean and deviation that were measured are not beside the weights, in "
        "data.json; put the export's data.json there, or give mean and deviation in the job in "
        "the place of measure (the stages' logs have them)"));
  }
  form.mean = facts.mean;
  form.deviation = facts.deviation;
  return form;
}

}  // namespace

PictureNetwork::PictureNetwork(TrainedNetwork trained, PictureForm form,
                               std::vector<std::string> names)
    : trained_(std::move(trained)),
      form_(std::move(form)),
      numbers_(form_.mean, form_.deviation),
      names_(std::move(names)) {}

absl::Status PictureNetwork::Check(const JobSpec& spec, PictureAnswer wanted) {
  ASSIGN_OR_RETURN(const Network network, ExpandNetwork(spec.network));
  RETURN_IF_ERROR(CheckReadsImages(spec, network));
  RETURN_IF_ERROR(CheckAnswer(spec, network, wanted));
  if (DataKinds().Named(spec.data.kind).Pictures(spec.data).has_value()) return absl::OkStatus();
  return FieldError("data", spec.data.kind, "gives no pictures");
}

absl::StatusOr<std::unique_ptr<PictureNetwork>> PictureNetwork::Load(
    const std::string& weights_file, const JobSpec& spec, const DataFacts& facts,
    PictureAnswer wanted, std::unique_ptr<Backend> backend) {
  ASSIGN_OR_RETURN(Network network, ExpandNetwork(spec.network));
  RETURN_IF_ERROR(CheckReadsImages(spec, network));
  RETURN_IF_ERROR(CheckAnswer(spec, network, wanted));
  ASSIGN_OR_RETURN(PictureForm form, FormOf(spec, network, facts));
  ASSIGN_OR_RETURN(TrainedNetwork trained,
                   LoadTrainedNetwork(weights_file, std::move(network), std::move(backend)));
  return std::unique_ptr<PictureNetwork>(
      new PictureNetwork(std::move(trained), std::move(form), facts.classes));
}

std::string PictureNetwork::ClassName(int64_t id) const {
  return id < std::ssize(names_) ? names_[static_cast<size_t>(id)] : "";
}

size_t PictureNetwork::batch() const {
  return std::clamp(kBatchNumbers / form_.numbers(), size_t{1}, kMostBatch);
}

absl::StatusOr<std::vector<std::vector<float>>> PictureNetwork::Run(
    std::span<const Picture> pictures) const {
  const Network& network = trained_.network;
  Backend& backend = *trained_.backend;
  const auto samples = static_cast<int64_t>(pictures.size());
  std::vector<float> numbers(pictures.size() * form_.numbers());
  for (size_t i = 0; i < pictures.size(); ++i) {
    CHECK_EQ(pictures[i].bytes.size(), form_.numbers()) << "the picture has not the form's size";
    numbers_.Convert(pictures[i], std::span(numbers).subspan(i * form_.numbers(), form_.numbers()));
  }
  const ValueType& type = network.wire(network.InputNamed(kPictureImages)).type;
  ASSIGN_OR_RETURN(Tensor input, MakeTensor(backend.allocator(), MemoryKind::kActivations,
                                            DType::kF32, RuntimeShape(type, samples)));
  backend.CopyFromHost(std::as_bytes(std::span<const float>(numbers)), input);
  ASSIGN_OR_RETURN(const std::vector<float> logits,
                   Evaluate(trained_, {std::move(input)}, samples));
  std::vector<std::vector<float>> answers;
  const auto each = static_cast<ptrdiff_t>(logits.size() / pictures.size());
  for (ptrdiff_t i = 0; i < std::ssize(pictures); ++i) {
    answers.emplace_back(logits.begin() + i * each, logits.begin() + (i + 1) * each);
  }
  return answers;
}

std::vector<ClassShare> LikeliestClasses(std::span<const float> logits, int64_t most) {
  CHECK(!logits.empty()) << "a network has classes";
  std::vector<int64_t> ids(logits.size());
  std::iota(ids.begin(), ids.end(), int64_t{0});
  const auto at = [logits](int64_t id) { return logits[static_cast<size_t>(id)]; };
  std::stable_sort(ids.begin(), ids.end(), [&](int64_t a, int64_t b) { return at(a) > at(b); });
  const double highest = at(ids.front());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - highest);
  std::vector<ClassShare> likeliest;
  for (const int64_t id : ids) {
    if (std::ssize(likeliest) == most) break;
    likeliest.push_back({id, std::exp(at(id) - highest) / sum});
  }
  return likeliest;
}

}  // namespace stagecoach
