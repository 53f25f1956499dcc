#include "stage/cell/layer_profile.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "network/passes/head_chunks.h"
#include "network/passes/padded_output.h"
#include "plan/costs/host_memory.h"
#include "stage/cell/cell.h"
#include "stage/cell/host_blocks.h"

namespace stagecoach {
namespace {

constexpr int kRuns = 5;

// [0, range), each about as often as another.
uint64_t Scattered(uint64_t place, uint64_t range) { return place * 2654435761u % range; }

// Of ordinary size: zeros or denormals would be another speed.
absl::StatusOr<Tensor> OrdinaryNumbers(const Shape& shape, Backend& backend) {
  ASSIGN_OR_RETURN(Tensor tensor,
                   MakeTensor(backend.allocator(), MemoryKind::kActivations, DType::kF32, shape));
  RETURN_IF_ERROR(CopyBlocks<float>(backend, tensor, [](int64_t first, std::span<float> values) {
    for (size_t i = 0; i < values.size(); ++i) {
      const uint64_t place = static_cast<uint64_t>(first) + i;
      values[i] = static_cast<float>(Scattered(place, 2001)) * 1e-3f - 1.0f;
    }
  }));
  return tensor;
}

// One id a sample is a length, and layers cost most at the largest.
absl::StatusOr<Tensor> OrdinaryIds(const ValueType& type, const Shape& shape, int64_t classes,
                                   Backend& backend) {
  const bool length = type.shape.rank() == 0;
  ASSIGN_OR_RETURN(Tensor tensor,
                   MakeTensor(backend.allocator(), MemoryKind::kActivations, DType::kI32, shape));
  RETURN_IF_ERROR(CopyBlocks<int32_t>(backend, tensor, [&](int64_t first, std::span<int32_t> ids) {
    for (size_t i = 0; i < ids.size(); ++i) {
      const uint64_t place = static_cast<uint64_t>(first) + i;
      const auto id = Scattered(place, static_cast<uint64_t>(classes));
      ids[i] = static_cast<int32_t>(length ? classes - 1 : id);
    }
  }));
  return tensor;
}

// Training hands the head a gradient whose rows are as far apart as those of its logits.
bool IsPadded(const Network& network, WireId id) {
  return id == network.objective.output &&
         PaddableOutput(network, network.layers.back()).has_value();
}

absl::StatusOr<Tensor> Padded(DType dtype, const Shape& shape, int64_t stride, Backend& backend) {
  ASSIGN_OR_RETURN(Tensor tensor, MakePaddedTensor(backend.allocator(), MemoryKind::kActivations,
                                                   dtype, shape, stride));
  const Shape whole{shape[0] * stride};
  ASSIGN_OR_RETURN(const Tensor numbers, OrdinaryNumbers(whole, backend));
  backend.Convert(numbers, Tensor(tensor.buffer(), dtype, whole));
  RETURN_IF_ERROR(backend.Synchronize());
  return tensor;
}

// What could lie on that wire.
absl::StatusOr<Tensor> MadeUp(const Network& network, WireId id, int64_t samples,
                              Backend& backend) {
  const ValueType& type = network.wire(id).type;
  const Shape shape = RuntimeShape(type, samples);
  if (type.element == Element::kIds) {
    const int64_t classes = network.IsInput(id) ? network.input(id).classes : 1;
    return OrdinaryIds(type, shape, classes, backend);
  }
  const DType dtype = ElementDType(type.element, ComputeDType(network.precision));
  if (IsPadded(network, id)) {
    const int64_t stride = backend.LogitsStride(shape.back(), dtype);
    if (stride != shape.back()) return Padded(dtype, shape, stride, backend);
  }
  ASSIGN_OR_RETURN(Tensor tensor, OrdinaryNumbers(shape, backend));
  if (dtype == DType::kF32) return tensor;
  ASSIGN_OR_RETURN(Tensor converted,
                   MakeTensor(backend.allocator(), MemoryKind::kActivations, dtype, shape));
  backend.Convert(tensor, converted);
  return converted;
}

absl::StatusOr<Tensors> MadeUp(const Network& network, const std::vector<WireId>& ids,
                               int64_t samples, Backend& backend) {
  Tensors tuple;
  for (const WireId id : ids) {
    ASSIGN_OR_RETURN(Tensor tensor, MadeUp(network, id, samples, backend));
    tuple.push_back(std::move(tensor));
  }
  return tuple;
}

// What other programs take from the machine only adds, and is none of the layer's cost.
double Least(const std::array<double, kRuns>& seconds) {
  return *std::min_element(seconds.begin(), seconds.end());
}

absl::StatusOr<LayerProfile> RunOnce(const Network& network, Cell& cell, const Tensors& inputs,
                                     int64_t samples, Backend& backend, const Clock& clock) {
  const ForwardContext context{.micro_batch = MicroBatchId(0), .sequences = samples};
  // Made anew each time: a layer may write into the gradient that it was handed.
  ASSIGN_OR_RETURN(Tensors gradients,
                   MadeUp(network, cell.wires().received_gradients, samples, backend));
  const double start = clock.MonotonicSeconds();
  ASSIGN_OR_RETURN(Tensors outputs, cell.Forward(inputs, context, true));
  RETURN_IF_ERROR(backend.Synchronize());
  const double middle = clock.MonotonicSeconds();
  outputs.clear();
  if (!cell.has_backward()) return LayerProfile{middle - start, 0};
  ASSIGN_OR_RETURN(gradients, cell.Backward(MicroBatchId(0), std::move(gradients)));
  RETURN_IF_ERROR(backend.Synchronize());
  return LayerProfile{middle - start, clock.MonotonicSeconds() - middle};
}

absl::StatusOr<LayerProfile> ProfileLayer(const Network& network, int layer, int64_t samples,
                                          Backend& backend, const Clock& clock,
                                          const std::function<bool()>& cancelled) {
  ASSIGN_OR_RETURN(std::unique_ptr<Cell> cell, Cell::Create(network, layer, layer + 1, 0, 1,
                                                            backend, nullptr, Cell::Head::kWhole));
  std::vector<WireId> wires = cell->wires().loaded;
  wires.insert(wires.end(), cell->wires().received.begin(), cell->wires().received.end());
  ASSIGN_OR_RETURN(const Tensors inputs, MadeUp(network, wires, samples, backend));
  std::array<double, kRuns> forward{}, backward{};
  for (int run = -1; run < kRuns; ++run) {  // -1: warm-up, not counted
    if (cancelled()) return absl::CancelledError("the profile was cancelled");
    ASSIGN_OR_RETURN(const LayerProfile one,
                     RunOnce(network, *cell, inputs, samples, backend, clock));
    if (run < 0) continue;
    forward[run] = one.forward_seconds;
    backward[run] = one.backward_seconds;
  }
  return LayerProfile{Least(forward), Least(backward)};
}

// A head that goes by chunks is measured by one chunk: all its logits may not even fit.
absl::StatusOr<LayerProfile> ProfileChunkedHead(const Network& network,
                                                const HeadChunkLimits& limits, int64_t samples,
                                                Backend& backend, const Clock& clock,
                                                const std::function<bool()>& cancelled) {
  const int64_t rows = HeadRows(network, samples);
  const int64_t of_chunk = std::min(rows, HeadChunkRows(network, limits));
  ASSIGN_OR_RETURN(const LayerProfile chunk,
                   ProfileLayer(HeadByRows(network), network.layers.back().index, of_chunk, backend,
                                clock, cancelled));
  const double chunks = static_cast<double>(rows) / static_cast<double>(of_chunk);
  return LayerProfile{chunk.forward_seconds * chunks, chunk.backward_seconds * chunks};
}

// Of the layer with that index, as training runs it.
absl::StatusOr<LayerProfile> ProfileAsTrained(const Network& network, int layer, int64_t samples,
                                              Backend& backend, const Clock& clock,
                                              const std::function<bool()>& cancelled) {
  const auto limits = backend.HeadChunks();
  const bool chunked =
      limits.has_value() && layer == network.layers.back().index && HeadGoesByChunks(network);
  if (chunked) return ProfileChunkedHead(network, *limits, samples, backend, clock, cancelled);
  return ProfileLayer(network, layer, samples, backend, clock, cancelled);
}

absl::Status NamingLayer(absl::Status status, const NetworkLayer& layer, const JobSpec& spec,
                         int64_t samples) {
  if (absl::IsResourceExhausted(status)) {
    status = absl::ResourceExhaustedError(absl::StrCat(
        status.message(), "; training.batch_size = ", spec.training.batch_size,
        " in training.micro_batches = ", spec.training.micro_batches, " makes micro-batches of ",
        samples, " samples: raise micro_batches or lower batch_size"));
  }
  return Annotate(status, absl::StrCat("profile of layer ", layer.index, " (", layer.label, ")"));
}

}  // namespace

absl::StatusOr<std::vector<LayerProfile>> ProfileLayers(const JobSpec& spec, const Network& network,
                                                        Backend& backend, const Clock& clock,
                                                        const std::function<bool()>& cancelled) {
  RETURN_IF_ERROR(ValidateJob(spec, network));
  const int64_t sequences =
      MicroBatchSize(spec.training.batch_size, spec.training.micro_batches, 0);
  backend.SetPrecision(spec.precision);
  backend.UseSpareMemory(
      SpareOfProfile(spec, network, backend.allocator().Use().limit, backend.Host()));
  std::vector<LayerProfile> profile;
  for (const NetworkLayer& layer : network.layers) {
    // Equal layers have one object of lists.
    const auto like =
        std::find_if(network.layers.begin(), network.layers.begin() + layer.index,
                     [&](const NetworkLayer& other) { return other.lists == layer.lists; });
    const size_t index = static_cast<size_t>(like - network.layers.begin());
    if (index < profile.size()) {
      profile.push_back(LayerProfile(profile[index]));
      continue;
    }
    auto one = ProfileAsTrained(network, layer.index, sequences, backend, clock, cancelled);
    if (!one.ok()) return NamingLayer(one.status(), layer, spec, sequences);
    profile.push_back(*one);
  }
  return profile;
}

}  // namespace stagecoach
