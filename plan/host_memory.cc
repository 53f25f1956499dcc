#include "plan/host_memory.h"

#include <algorithm>
#include <limits>
#include <variant>

#include "operations/convolution.h"
#include "operations/winograd.h"
#include "plan/saturate.h"

namespace stagecoach {
namespace {

constexpr int64_t kFloat = 4;
constexpr int64_t kScratchBytes = int64_t{1} << 20;  // of a thread at work
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

// Of a weight [out, height, width, in of a group]. Channels that are made come in whole lanes, and those that are read
// where they fill one; with groups only a single channel each is packed beside others.
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

// Of a call by Winograd's filtering: its room, and a share's sum beside it. 0 where it is direct.
int64_t WinogradBytes(const LayerLists& lists, const Call& call, int64_t samples) {
  const Shape& weight = lists.value(call.inputs[1]).type.shape;
  const Shape& x = lists.value(call.inputs[0]).type.shape;
  const Shape& y = lists.value(call.outputs[0]).type.shape;
  const bool makes_places = MakesPlaces(call);
  const Shape &image = makes_places ? x : y, &places = makes_places ? y : x;
  const ConvolutionExtents extents = {.image = {image[0], image[1]},
                                      .window = {weight[1], weight[2]},
                                      .places = {places[0], places[1]},
                                      .in = image[2],
                                      .out = places[2]};
  if (!SuitsWinograd(StepsOf(call), extents)) return 0;
  const int64_t images = WinogradImages(samples, places[0] * places[1]);
  return SaturatingAdd(WinogradRoomBytes(extents, images), weight.elements() * kFloat);
}

// The shares of a weight's gradient, and the room of a thread.
int64_t MostWorkspaceBytes(const LayerLists& lists, int64_t samples) {
  int64_t most = 0;
  for (const ListedCall& listed : lists.forward.calls) {
    const Call& call = listed.call;
    if (!MakesPlaces(call) && !MakesImage(call)) continue;
    const int64_t weight = lists.value(call.inputs[1]).type.shape.elements() * kFloat;
    const Shape& places = lists.value(call.outputs[0]).type.shape;
    const int64_t shares =
        SaturatingMultiply(weight, SharesOfSamples(samples, places[0] * places[1]));
    const int64_t room = std::max(kScratchBytes, WinogradBytes(lists, call, samples));
    most = std::max(most, SaturatingAdd(shares, room));
  }
  return most;
}

}  // namespace

int64_t HostWorkspaceBytes(const Network& model, int first, int last, int64_t samples) {
  int64_t most = 0;
  for (int layer = first; layer < last; ++layer) {
    most = std::max(most,
                    MostWorkspaceBytes(*model.layers[static_cast<size_t>(layer)].lists, samples));
  }
  return most;
}

int64_t PackedWeightBytes(const Network& model, int first, int last) {
  int64_t bytes = 0;
  for (int layer = first; layer < last; ++layer) {
    const LayerLists& lists = *model.layers[static_cast<size_t>(layer)].lists;
    bytes = SaturatingAdd(bytes, PackedBytes(lists, lists.forward));
    bytes = SaturatingAdd(bytes, PackedBytes(lists, lists.backward));
  }
  return bytes;
}

HostForecast ForecastOnHost(const JobSpec& spec, const Network& model,
                            std::span<const StageProgram> programs,
                            std::span<const StageProgram> evaluation, int stage, int first,
                            int last, int64_t limit) {
  const TrainingSpec& training = spec.training;
  HostForecast forecast{.memory = ForecastStageMemory(model, programs, stage,
                                                      {.first_layer = first,
                                                       .last_layer = last,
                                                       .batch_size = training.batch_size,
                                                       .micro_batches = training.micro_batches,
                                                       .optimizer = training.optimizer,
                                                       .average = training.average.decay > 0,
                                                       .evaluation = evaluation})};
  int64_t& activations = forecast.memory.activations;
  const int64_t samples = MicroBatchSize(training.batch_size, training.micro_batches, 0);
  activations = SaturatingAdd(activations, HostWorkspaceBytes(model, first, last, samples));
  const int64_t needed = forecast.memory.total(), packed = PackedWeightBytes(model, first, last);
  const int64_t with_packed = SaturatingAdd(SaturatingAdd(needed, needed / 20), packed);
  forecast.spare.packed_weights = limit <= 0 || with_packed <= limit;
  if (forecast.spare.packed_weights) activations = SaturatingAdd(activations, packed);
  forecast.spare.rooms =
      limit <= 0 ? std::numeric_limits<int64_t>::max() : std::max<int64_t>(0, limit - with_packed);
  return forecast;
}

}  // namespace stagecoach
