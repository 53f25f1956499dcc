#include "plan/costs/host_memory.h"

#include <algorithm>
#include <limits>
#include <variant>

#include "operations/images/convolution.h"
#include "operations/images/winograd.h"
#include "plan/costs/product_scratch.h"
#include "plan/costs/saturate.h"
#include "plan/job/optimizer_slots.h"

namespace stagecoach {
namespace {

constexpr int64_t kFloat = 4;
constexpr int64_t kLibraryNotes = int64_t{16} << 10;
constexpr int64_t kBesideColumnsBytes = 64 << 10;  // the product's own, sums of a bias
constexpr int64_t kLanes = 16;  // channels that the library packs beside each other, at most

int64_t WholeLanes(int64_t channels) { return (channels + kLanes - 1) / kLanes * kLanes; }

bool MakesPlaces(const Call& call) { return call.operation == "convolution"; }
bool MakesImage(const Call& call) {
  return call.operation == "convolution_input_gradient" ||
         call.operation == "transposed_convolution";
}

int64_t GroupsOf(const Call& call) {
  const AttributeValue* const groups = call.attributes.Find("groups");
  return groups == nullptr ? 1 : std::get<int64_t>(*groups);
}

ConvolutionSteps StepsOf(const Call& call) {
  if (MakesPlaces(call)) return FromAttributes<ConvolutionAttributes>(call.attributes)->steps;
  return FromAttributes<ConvolutionInputGradientAttributes>(call.attributes)->steps;
}

// Of a weight [out, height, width, in of a group]. Channels that are made come in whole lanes, and
// those that are read where they fill one; with groups only a single channel each is packed beside
// others.
int64_t PackedBytes(const Call& call, const Shape& weight) {
  const int64_t groups = GroupsOf(call), taps = weight[1] * weight[2] * kFloat;
  const int64_t out = weight[0] / std::max<int64_t>(groups, 1), in = weight[3];
  if (groups > 1 && out == 1 && in == 1) return SaturatingMultiply(taps, WholeLanes(groups));
  if (groups > 1) return SaturatingMultiply(taps, SaturatingMultiply(weight[0], in));
  const auto read = [](int64_t channels) {
    return channels < kLanes ? channels : WholeLanes(channels);
  };
  const int64_t channels = MakesPlaces(call) ? SaturatingMultiply(WholeLanes(out), read(in))
                                             : SaturatingMultiply(read(out), WholeLanes(in));
  return SaturatingMultiply(taps, channels);
}

// What is kept of each weight: one packing for forwards, one for gradients of inputs.
int64_t PackedBytes(const LayerLists& lists, const CallList& list) {
  int64_t bytes = 0;
  for (const ListedCall& listed : list.calls) {
    if (!MakesPlaces(listed.call) && !MakesImage(listed.call)) continue;
    const Shape& weight = lists.value(listed.call.inputs[1]).type.shape;
    bytes = SaturatingAdd(bytes, PackedBytes(listed.call, weight));
  }
  return bytes;
}

ConvolutionExtents ExtentsOf(const LayerLists& lists, const Call& call) {
  const Shape& weight = lists.value(call.inputs[1]).type.shape;
  const Shape& x = lists.value(call.inputs[0]).type.shape;
  const Shape& y = lists.value(call.outputs[0]).type.shape;
  const bool makes_places = MakesPlaces(call);
  const Shape &image = makes_places ? x : y, &places = makes_places ? y : x;
  return {.image = {image[0], image[1]},
          .window = {weight[1], weight[2]},
          .places = {places[0], places[1]},
          .in = image[2],
          .out = places[2]};
}

int64_t OperandBytes(const ConvolutionExtents& e) {
  const int64_t places = e.places.height * e.places.width;
  return kFloat * (e.image.height * e.image.width * e.in + places * e.out);
}

// A call by Winograd's filtering: its tiles, and in bfloat16 its operands widened.
int64_t WinogradBytes(const ConvolutionExtents& e, int64_t samples, bool widens) {
  const int64_t images = WinogradImages(samples, e.places.height * e.places.width);
  const int64_t room = WinogradRoomBytes(e, images);
  if (!widens) return room;
  return SaturatingAdd(room, SaturatingMultiply(images, OperandBytes(e)));
}

// A thread's room for a product of columns, which a convolution is where the library has no kernel
// of its own for it: rows of places, 128 at most or one row, with all that they read; and the
// scratch of the largest of the three products.
int64_t ColumnBytes(const Shape& weight, int64_t groups, const Shape& places,
                    const HostProfile& host) {
  constexpr int64_t kPlaces = 128;
  const int64_t block = std::min(places[0] * places[1], std::max(kPlaces, places[1]));
  const int64_t row = weight[1] * weight[2] * weight[3],
                out = weight[0] / std::max<int64_t>(groups, 1);
  const int64_t scratch =
      std::max({ProductScratchBytes({.m = block, .k = row, .n = out}, host),
                ProductScratchBytes({.m = block, .k = out, .n = row}, host),
                ProductScratchBytes({.m = out, .k = block, .n = row, .turned = true}, host)});
  return SaturatingAdd(SaturatingAdd(kBesideColumnsBytes, scratch),
                       SaturatingMultiply(kFloat * block, row));
}

// What the library takes for a call, at most: notes, and a copy of the pixels that a 1x1 with
// strides reads.
int64_t LibraryScratch(const Call& call, const ConvolutionExtents& e) {
  const Plane stride = StepsOf(call).stride;
  if (e.window != Plane{1, 1} || stride == Plane{1, 1}) return kLibraryNotes;
  const int64_t pixels = SaturatingMultiply(e.places.height, e.places.width);
  return SaturatingAdd(kLibraryNotes, SaturatingMultiply(pixels, kFloat * WholeLanes(e.in)));
}

// Has a share of a weight's gradient more calls than one, as a call shows no progress and must end
// soon?
bool HasSeveralCalls(const Shape& weight, const ConvolutionExtents& e, int64_t samples) {
  constexpr double kMostCallFlops = 2e10;
  const int64_t places = e.places.height * e.places.width;
  const double flops = 2.0 * static_cast<double>(weight.elements()) * static_cast<double>(places);
  return flops * static_cast<double>(SamplesOfShare(samples, places)) > kMostCallFlops;
}

// Shares are packed weights, and so is the sum that a share of several calls has beside. In
// bfloat16 operands are widened as they are read, and beside a packing that is not kept there is
// the weight in floats.
void Raise(const LayerLists& lists, const Call& call, int64_t samples, bool widens,
           const HostProfile& host, KernelWorkspace* most) {
  const Shape& shape = lists.value(call.inputs[1]).type.shape;
  const Shape& made = lists.value(call.outputs[0]).type.shape;
  const ConvolutionExtents extents = ExtentsOf(lists, call);
  int64_t weight = PackedBytes(call, shape);
  int64_t room = std::max(
      LibraryScratch(call, extents),
      ColumnBytes(shape, GroupsOf(call),
                  MakesPlaces(call) ? made : lists.value(call.inputs[0]).type.shape, host));
  if (host.avx512 && SuitsWinograd(StepsOf(call), extents)) {
    weight = 9 * kFloat * WholeLanes(extents.in) * WholeLanes(extents.out);
    room = SaturatingAdd(WinogradBytes(extents, samples, widens), weight);
  } else if (widens) {
    const int64_t operands =
        std::min(kMostWidenedBytes, SaturatingMultiply(samples, OperandBytes(extents)));
    room = SaturatingAdd(room + operands, weight);
  } else if (HasSeveralCalls(shape, extents, samples)) {
    room = SaturatingAdd(room, weight);
  }
  int64_t shares = SaturatingMultiply(weight, SharesOfSamples(samples, made[0] * made[1]));
  if (widens) shares = std::max(shares, SaturatingAdd(weight, shape.elements() * kFloat));
  most->Raise({room, shares});
}

constexpr int64_t kMebibyte = int64_t{1} << 20;
// Measured on x86-64, rounded up: 31 MiB of the program's file, the rest of heap, stacks and
// generated code.
constexpr int64_t kProgramBytes = 72 * kMebibyte;
constexpr int64_t kThreadBytes = 4 * kMebibyte;  // the library packs operands of products there
constexpr int64_t kLinkBytes = 8 * kMebibyte;    // gRPC's frames at a boundary
constexpr int64_t kSnapshots = 2;                // of a cell, at most

// Parameters in float32, and what the optimizer keeps. In bfloat16 `parameters` has the copy that
// operations read as well.
int64_t StateBytes(const StageMemory& memory) {
  return SaturatingAdd(memory.parameters, memory.optimizer);
}

}  // namespace

KernelWorkspace ConvolutionWorkspace(const Network& network, int first, int last, int64_t samples,
                                     const HostProfile& host) {
  KernelWorkspace most;
  for (int layer = first; layer < last; ++layer) {
    const LayerLists& lists = *network.layers[static_cast<size_t>(layer)].lists;
    for (const ListedCall& listed : lists.forward.calls) {
      if (!MakesPlaces(listed.call) && !MakesImage(listed.call)) continue;
      Raise(lists, listed.call, samples, network.precision == Precision::kBfloat16, host, &most);
    }
  }
  return most;
}

KernelWorkspace HostWorkspace(const Network& network, int first, int last, int64_t samples,
                              const HostProfile& host) {
  KernelWorkspace most = KernelWorkspaceOf(network, first, last, samples, host);
  most.Raise(ConvolutionWorkspace(network, first, last, samples, host));
  return most;
}

int64_t PackedWeightBytes(const Network& network, int first, int last) {
  int64_t bytes = 0;
  for (int layer = first; layer < last; ++layer) {
    const LayerLists& lists = *network.layers[static_cast<size_t>(layer)].lists;
    bytes = SaturatingAdd(bytes, PackedBytes(lists, lists.forward));
    bytes = SaturatingAdd(bytes, PackedBytes(lists, lists.backward));
  }
  return bytes;
}

HostForecast ForecastOnHost(const JobSpec& spec, const Network& network,
                            std::span<const StageProgram> programs,
                            std::span<const StageProgram> evaluation, const HostQuery& query) {
  const TrainingSpec& training = spec.training;
  const int first = query.first_layer, last = query.last_layer;
  const int64_t batch_size = query.batch_size > 0 ? query.batch_size : training.batch_size;
  HostForecast forecast{.memory = ForecastStageMemory(network, programs, query.stage,
                                                      {.first_layer = first,
                                                       .last_layer = last,
                                                       .batch_size = batch_size,
                                                       .micro_batches = training.micro_batches,
                                                       .optimizer = training.optimizer,
                                                       .average = training.average.decay > 0,
                                                       .evaluation = evaluation,
                                                       .decoding = query.decoding})};
  int64_t& activations = forecast.memory.activations;
  const auto add = [&](int64_t bytes) { activations = SaturatingAdd(activations, bytes); };
  const int64_t samples = MicroBatchSize(batch_size, training.micro_batches, 0);
  const KernelWorkspace workspace = HostWorkspace(network, first, last, samples, query.host);
  const int64_t threads = std::max(1, query.host.threads);
  add(SmallTensorBytes(network, first, last, training.micro_batches, training.optimizer));
  add(SaturatingAdd(workspace.shared, workspace.room));
  add(kSmallRoomBytes * (threads - 1));
  const int64_t needed = forecast.memory.total(), packed = PackedWeightBytes(network, first, last);
  const int64_t with_packed = SaturatingAdd(SaturatingAdd(needed, needed / 20), packed);
  forecast.spare.packed_weights = query.limit <= 0 || with_packed <= query.limit;
  if (forecast.spare.packed_weights) add(packed);
  forecast.spare.rooms = query.limit <= 0 ? std::numeric_limits<int64_t>::max()
                                          : std::max<int64_t>(0, query.limit - with_packed);
  if (workspace.room > kSmallRoomBytes) {
    // Smaller rooms of other operations may be there where another large one is not.
    add(std::min(forecast.spare.rooms, SaturatingMultiply(threads - 1, workspace.room)));
  }
  return forecast;
}

SpareMemory SpareOfProfile(const JobSpec& spec, const Network& network, int64_t limit,
                           const HostProfile& host) {
  if (limit <= 0) {
    return {.packed_weights = true, .rooms = std::numeric_limits<int64_t>::max()};
  }
  const int64_t samples = MicroBatchSize(spec.training.batch_size, spec.training.micro_batches, 0);
  const Schedule schedule = MakeSchedule({.kind = "gpipe", .stages = 1, .micro_batches = 1});
  const int layers = static_cast<int>(network.layers.size());
  int64_t most = 0, packed = 0;
  for (int layer = 0; layer < layers; ++layer) {
    const StageMemory one = ForecastStageMemory(
        network, schedule.programs, 0,
        {.first_layer = layer, .last_layer = layer + 1, .batch_size = samples, .micro_batches = 1});
    most = std::max(most, one.total());
    packed = std::max(packed, PackedWeightBytes(network, layer, layer + 1));
  }
  const KernelWorkspace workspace = HostWorkspace(network, 0, layers, samples, host);
  const int64_t needed = SaturatingAdd(most, SaturatingAdd(workspace.shared, workspace.room));
  const int64_t left = std::max<int64_t>(0, limit - std::min(limit, needed)) / 2;
  const bool keeps = packed <= left;
  return {.packed_weights = keeps, .rooms = keeps ? left - packed : left};
}

int64_t ProcessBytes(const StageMemory& own, const StageMemory* before, int threads) {
  int64_t bytes = SaturatingAdd(own.total(), SaturatingMultiply(kSnapshots, StateBytes(own)));
  bytes = SaturatingAdd(bytes, kProgramBytes + threads * kThreadBytes);
  if (before == nullptr) return bytes;
  bytes = SaturatingAdd(bytes, SaturatingMultiply(kSnapshots, StateBytes(*before)));
  return SaturatingAdd(bytes, 2 * kLinkBytes);
}

}  // namespace stagecoach
