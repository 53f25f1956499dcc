// Batch norm's running moments over steps of unequal micro-batches, one of them recomputed, and one
// step skipped.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "base/numbers/random.h"
#include "network/layers/norms.h"
#include "network/network_builder.h"
#include "network/objective_kind.h"
#include "stage/cell/cell.h"
#include "tests/oracle/oracle.h"

namespace stagecoach {
namespace {

constexpr int64_t kHeight = 5, kWidth = 3, kChannels = 6, kAveragedBatch = 7;
constexpr int kAveragedSteps = 4, kSkipped = 1;
const std::vector<int64_t> kMicroBatchesOfStep = {3, 2, 2};
constexpr double kMomentum = 0.2;

absl::StatusOr<Network> OneBatchNorm() {
  NetworkBuilder builder(0, {});
  const WireId x = builder.Input("x", ActivationType({kHeight, kWidth, kChannels}), 0);
  const WireId targets =
      builder.Input("targets", {Element::kIds, Leading::kSamples, {kHeight, kWidth}}, kChannels);
  ASSIGN_OR_RETURN(const WireId y, builder.Add(BatchNormSpec{.momentum = kMomentum}, "layer", x));
  ASSIGN_OR_RETURN(Network network, builder.Finish({.output = y, .targets = targets}, "averages"));
  RETURN_IF_ERROR(SetObjective({}, "averages", &network));
  return network;
}

// Channels of other means and deviations: one that varies by a thousandth.
std::vector<float> Images(int step) {
  std::vector<float> values(kAveragedBatch * kHeight * kWidth * kChannels);
  for (size_t i = 0; i < values.size(); ++i) {
    const auto channel = static_cast<int>(i % kChannels);
    const double deviation = channel == 5 ? 1e-3 : 0.5 * (channel + 1);
    const RandomStream stream{.seed = 31, .step = static_cast<uint32_t>(step)};
    values[i] = static_cast<float>(3.0 - channel + deviation * RandomNormal(stream, i));
  }
  return values;
}

absl::StatusOr<Tensor> OnDevice(Backend& backend, std::span<const float> values, Shape shape) {
  ASSIGN_OR_RETURN(Tensor tensor, MakeTensor(backend.allocator(), MemoryKind::kActivations,
                                             DType::kF32, std::move(shape)));
  backend.CopyFromHost(std::as_bytes(values), tensor);
  RETURN_IF_ERROR(backend.Synchronize());
  return tensor;
}

absl::Status TrainStep(Cell& cell, Backend& backend, int step, std::span<const float> images) {
  const int64_t sample = kHeight * kWidth * kChannels;
  int64_t first = 0;
  for (size_t m = 0; m < kMicroBatchesOfStep.size(); ++m) {
    const int64_t samples = kMicroBatchesOfStep[m];
    const Shape shape = {samples * kHeight * kWidth, kChannels};
    const auto part = images.subspan(first * sample, samples * sample);
    const ForwardContext context{.step = static_cast<uint64_t>(step),
                                 .micro_batch = MicroBatchId(static_cast<int>(m)),
                                 .sequences = samples};
    ASSIGN_OR_RETURN(Tensor x, OnDevice(backend, part, shape));
    const bool keep = m == 1;
    RETURN_IF_ERROR(cell.Forward({std::move(x)}, context, keep).status());
    if (!keep) RETURN_IF_ERROR(cell.Recompute(context.micro_batch));
    ASSIGN_OR_RETURN(Tensor dy, OnDevice(backend, part, shape));
    RETURN_IF_ERROR(cell.Backward(context.micro_batch, {std::move(dy)}).status());
    first += samples;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status RecordAverages(Backend& backend, Recorder* recorder) {
  ASSIGN_OR_RETURN(const Network network, OneBatchNorm());
  ASSIGN_OR_RETURN(
      const std::unique_ptr<Cell> cell,
      Cell::Create(network, 0, 1, 5, static_cast<int>(kMicroBatchesOfStep.size()), backend));
  for (int step = 0; step < kAveragedSteps; ++step) {
    const std::vector<float> images = Images(step);
    RETURN_IF_ERROR(TrainStep(*cell, backend, step, images));
    if (step != kSkipped) {
      RETURN_IF_ERROR(cell->CommitStates());
      ASSIGN_OR_RETURN(const Tensor x,
                       OnDevice(backend, images, {kAveragedBatch * kHeight * kWidth, kChannels}));
      recorder->Add(absl::StrCat("averages/x", step), backend, x);
    }
    cell->ZeroGradients();
  }
  for (const LayerState* state : cell->states()) {
    recorder->Add("averages/" + state->spec.name, backend, state->value);
  }
  recorder->Note("averages/momentum", absl::StrCat(kMomentum));
  return backend.Synchronize();
}

}  // namespace stagecoach
