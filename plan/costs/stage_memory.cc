// ForecastStageMemory: what a stage keeps from step to step, and the peak of the rest.
#include <algorithm>
#include <span>
#include <vector>

#include "base/errors/check.h"
#include "base/numbers/saturate.h"
#include "network/lists/cost.h"
#include "network/passes/padded_output.h"
#include "network/passes/tied.h"
#include "plan/costs/activation_memory.h"
#include "plan/costs/card_memory.h"
#include "plan/costs/cost_model.h"
#include "plan/job/optimizer_slots.h"

namespace stagecoach {
namespace {

constexpr int64_t kFloatBytes = 4;

// Owners in front of the cell that have a user in it, which share one copy of the value.
std::vector<ParameterUse> CopiedValues(const Network& network, int first, int last) {
  std::vector<ParameterUse> copied;
  for (const TiedParameter& tied : TiedParameters(network)) {
    if (tied.owner.layer >= first) continue;
    const bool used = std::any_of(
        tied.users.begin(), tied.users.end(),
        [&](const ParameterUse& use) { return first <= use.layer && use.layer < last; });
    if (used) copied.push_back(tied.owner);
  }
  return copied;
}

TiedBytes TiedBytesOf(const Network& network, int first, int last) {
  const CellTies ties = TiesOfCell(network, first, last);
  const std::vector<ParameterUse> copied = CopiedValues(network, first, last);
  std::vector<ParameterUse> passed;
  for (const ParameterUse& owner : ties.received_values) {
    if (std::find(copied.begin(), copied.end(), owner) == copied.end()) passed.push_back(owner);
  }
  std::vector<ParameterUse> passed_up;
  for (const ParameterUse& user : ties.sent_gradients) {
    if (user.layer >= last) passed_up.push_back(user);
  }
  TiedBytes bytes{.passed_values = ValueBytes(network, passed),
                  .passed_gradients = GradientBytes(network, passed_up)};
  for (const ParameterUse& owner : ties.received_values) {
    bytes.received_values.push_back(ValueBytes(network, {owner}));
  }
  for (const ParameterUse& user : ties.received_gradients) {
    bytes.received_gradients.push_back(GradientBytes(network, {user}));
  }
  return bytes;
}

}  // namespace

StageMemory ForecastStageMemory(const Network& network, std::span<const StageProgram> programs,
                                int stage, const StageMemoryQuery& query) {
  const size_t stages = std::max(programs.size(), query.evaluation.size());
  CHECK(0 <= stage && stage < static_cast<int>(stages)) << "stage " << stage << " of " << stages;
  const int layers = static_cast<int>(network.layers.size());
  CHECK(0 <= query.first_layer && query.first_layer < query.last_layer &&
        query.last_layer <= layers)
      << "layers [" << query.first_layer << ", " << query.last_layer << ") of " << layers;
  int64_t parameters = 0, gradients = 0, trained = 0, states = 0, optimizer = 0;  // elements
  int64_t base = 0, accumulators = 0;                                             // bytes
  const DType dtype = ComputeDType(network.precision);
  for (int i = query.first_layer; i < query.last_layer; ++i) {
    const NetworkLayer& layer = network.layers[i];
    for (size_t k = 0; k < layer.parameters.size(); ++k) {
      const ParameterSpec& parameter = layer.parameters[k];
      const int64_t elements = parameter.shape.elements();
      if (parameter.part == ParameterSpec::Part::kBase && !parameter.tied()) {
        const ValueType& type = layer.lists->value(layer.lists->parameters[k]).type;
        base += elements * DTypeSize(ElementDType(type.element, dtype));
      } else if (!parameter.tied()) {
        parameters += elements;
        if (parameter.trained) {
          trained += elements;
          optimizer += OptimizerElements(query.optimizer, parameter.shape);
        }
      }
      if (layer.lists->parameter_gradients[k].valid()) gradients += elements;
    }
    for (const StateSpec& state : layer.states) states += state.shape.elements();
    accumulators += AccumulatorBytes(*layer.lists);
  }
  const int64_t copy = dtype == DType::kF32 ? 0 : DTypeSize(dtype);  // that operations read
  StageMemory memory;
  memory.parameters = parameters * (kFloatBytes + copy) + states * kFloatBytes + base;
  memory.parameters +=
      ValueBytes(network, CopiedValues(network, query.first_layer, query.last_layer));
  memory.gradients = gradients * kFloatBytes + accumulators;
  const int64_t averaged = query.average ? trained + states : 0;
  memory.optimizer = (optimizer + averaged) * kFloatBytes;
  const TiedBytes tied = TiedBytesOf(network, query.first_layer, query.last_layer);
  for (const bool evaluation : {false, true}) {
    const std::span<const StageProgram> walked = evaluation ? query.evaluation : programs;
    if (walked.empty()) continue;
    const ActivationPeak peak = PeakOfActivations(network, walked, stage, evaluation, tied, query);
    int64_t bytes = peak.bytes;
    if (evaluation && query.decoding != nullptr) {
      bytes = query.decoding->Of(query.first_layer, query.last_layer, bytes);
    }
    if (evaluation && bytes <= memory.activations) continue;
    memory.decoding = bytes - peak.bytes;
    memory.activations = bytes;
    memory.fullest = peak.moment;
  }
  if (query.card) {
    const int64_t call = CallBytesOnCard(*query.card, network, query.first_layer, query.last_layer,
                                         query.batch_size, query.micro_batches);
    memory.activations =
        SaturatingAdd(memory.activations, SaturatingAdd(kCardWorkspaceBytes, call));
    if (!HasChunkedHead(network, query)) {  // a chunk has its own
      memory.activations = SaturatingAdd(
          memory.activations,
          PaddingBytes(network, query.first_layer, query.last_layer, query.batch_size));
    }
  }
  return memory;
}

}  // namespace stagecoach
