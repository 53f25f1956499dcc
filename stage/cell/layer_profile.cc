#include "stage/cell/layer_profile.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "stage/cell/cell.h"

namespace stagecoach {
namespace {

constexpr int kRuns = 5;

// Values of ordinary size: zeros or denormals would be another speed.
absl::StatusOr<Tensor> MadeUpActivation(int64_t rows, int64_t width, DType dtype,
                                        Backend& backend) {
  ASSIGN_OR_RETURN(Tensor tensor, MakeTensor(backend.allocator(), MemoryKind::kActivations,
                                             DType::kF32, Shape{rows, width}));
  std::vector<float> values(static_cast<size_t>(rows * width));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(i * 2654435761u % 2001) * 1e-3f - 1.0f;
  }
  backend.CopyFromHost(std::as_bytes(std::span(values)), tensor);
  RETURN_IF_ERROR(backend.Synchronize());
  if (dtype == DType::kF32) return tensor;
  ASSIGN_OR_RETURN(Tensor converted, MakeTensor(backend.allocator(), MemoryKind::kActivations,
                                                dtype, tensor.shape()));
  backend.Convert(tensor, converted);
  return converted;
}

absl::StatusOr<Tensor> MadeUpIds(int64_t rows, int64_t vocabulary, Backend& backend) {
  ASSIGN_OR_RETURN(Tensor tensor, MakeTensor(backend.allocator(), MemoryKind::kActivations,
                                             DType::kI32, Shape{rows}));
  std::vector<int32_t> ids(static_cast<size_t>(rows));
  for (size_t i = 0; i < ids.size(); ++i) {
    ids[i] = static_cast<int32_t>(i * 2654435761u % static_cast<uint64_t>(vocabulary));
  }
  backend.CopyFromHost(std::as_bytes(std::span(ids)), tensor);
  RETURN_IF_ERROR(backend.Synchronize());
  return tensor;
}

double Median(std::array<double, kRuns> seconds) {
  std::nth_element(seconds.begin(), seconds.begin() + kRuns / 2, seconds.end());
  return seconds[kRuns / 2];
}

absl::StatusOr<LayerProfile> RunOnce(Cell& cell, const Tensor& input, int64_t sequences,
                                     int64_t width_out, DType dtype, Backend& backend,
                                     const Clock& clock) {
  const ForwardContext context{.micro_batch = MicroBatchId(0), .sequences = sequences};
  // Made anew each time: a layer may write into the gradient that it was handed.
  ASSIGN_OR_RETURN(Tensor gradient, MadeUpActivation(input.shape()[0], width_out, dtype, backend));
  const double start = clock.MonotonicSeconds();
  ASSIGN_OR_RETURN(Tensors outputs, cell.Forward({input}, context, true));
  RETURN_IF_ERROR(backend.Synchronize());
  const double middle = clock.MonotonicSeconds();
  outputs.clear();
  ASSIGN_OR_RETURN(Tensors gradients, cell.Backward(MicroBatchId(0), {std::move(gradient)}));
  RETURN_IF_ERROR(backend.Synchronize());
  return LayerProfile{middle - start, clock.MonotonicSeconds() - middle};
}

absl::StatusOr<LayerProfile> ProfileLayer(const ExpandedModel& model, const ExpandedLayer& layer,
                                          int64_t sequences, Backend& backend, const Clock& clock,
                                          const std::function<bool()>& cancelled) {
  ASSIGN_OR_RETURN(std::unique_ptr<Cell> cell,
                   Cell::Create(model, layer.index, layer.index + 1, 0, 1, backend));
  const int64_t rows = sequences * model.context;
  const DType dtype = ComputeDType(model.precision);
  ASSIGN_OR_RETURN(Tensor input, layer.width_in == 0
                                     ? MadeUpIds(rows, model.vocabulary, backend)
                                     : MadeUpActivation(rows, layer.width_in, dtype, backend));
  std::array<double, kRuns> forward{}, backward{};
  for (int run = -1; run < kRuns; ++run) {  // -1: warm-up, not counted
    if (cancelled()) return absl::CancelledError("the profile was cancelled");
    ASSIGN_OR_RETURN(const LayerProfile one,
                     RunOnce(*cell, input, sequences, layer.width_out, dtype, backend, clock));
    if (run < 0) continue;
    forward[run] = one.forward_seconds;
    backward[run] = one.backward_seconds;
  }
  return LayerProfile{Median(forward), Median(backward)};
}

}  // namespace

absl::StatusOr<std::vector<LayerProfile>> ProfileLayers(const JobSpec& spec, Backend& backend,
                                                        const Clock& clock,
                                                        const std::function<bool()>& cancelled) {
  RETURN_IF_ERROR(ValidateJobSpec(spec));
  ASSIGN_OR_RETURN(const ExpandedModel model, ExpandModel(spec.model, spec.precision));
  const int64_t sequences =
      MicroBatchSize(spec.training.batch_size, spec.training.micro_batches, 0);
  backend.SetPrecision(spec.precision);
  std::vector<LayerProfile> profile;
  for (const ExpandedLayer& layer : model.layers) {
    // Equal layers have one object of lists.
    const auto like =
        std::find_if(model.layers.begin(), model.layers.begin() + layer.index,
                     [&](const ExpandedLayer& other) { return other.lists == layer.lists; });
    const size_t index = static_cast<size_t>(like - model.layers.begin());
    if (index < profile.size()) {
      profile.push_back(LayerProfile(profile[index]));
      continue;
    }
    auto one = ProfileLayer(model, layer, sequences, backend, clock, cancelled);
    if (!one.ok()) {
      return Annotate(one.status(),
                      absl::StrCat("profile of layer ", layer.index, " (", layer.label, ")"));
    }
    profile.push_back(*one);
  }
  return profile;
}

}  // namespace stagecoach
