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

// What layers keep from step to step.
struct Kept {
  int64_t parameters = 0, gradients = 0, trained = 0, states = 0, optimizer = 0;  // elements
  int64_t base = 0, accumulators = 0;                                             // bytes
};

void AddLayer(const NetworkLayer& layer, const OptimizerSpec& optimizer, DType dtype, Kept* kept) {
  for (size_t k = 0; k < layer.parameters.size(); ++k) {
    const ParameterSpec& parameter = layer.parameters[k];
    const int64_t elements = parameter.shape.elements();
    if (parameter.part == ParameterSpec::Part::kBase && !parameter.tied()) {
      const ValueType& type = layer.lists->value(layer.lists->parameters[k]).type;
      kept->base += elements * DTypeSize(ElementDType(type.element, dtype));
    } else if (!parameter.tied()) {
      kept->parameters += elements;
      if (parameter.trained) {
        kept->trained += elements;
        kept->optimizer += OptimizerElements(optimizer, parameter.shape);
      }
    }
    if (layer.lists->parameter_gradients[k].valid()) kept->gradients += elements;
  }
  for (const StateSpec& state : layer.states) kept->states += state.shape.elements();
  kept->accumulators += AccumulatorBytes(*layer.lists);
}

// Beyond the layers' own, of the largest call and of all paddings.
int64_t BesideOnCard(const Network& network, const StageMemoryQuery& query) {
  int64_t call = 0, padding = 0;
  for (const LayerRange& cell : query.cells) {
    call = std::max(call, CallBytesOnCard(*query.card, network, cell.first, cell.last,
                                          query.batch_size, query.micro_batches));
    padding = SaturatingAdd(padding,
                            PaddingBytes(network, cell.first, cell.last, query.batch_size));
  }
  const int64_t bytes = SaturatingAdd(kCardWorkspaceBytes, call);
  return HasChunkedHead(network, query) ? bytes : SaturatingAdd(bytes, padding);  // a chunk has its own
}

}  // namespace

StageMemory ForecastStageMemory(const Network& network, std::span<const StageProgram> programs,
                                int stage, const StageMemoryQuery& query) {
  const size_t stages = std::max(programs.size(), query.evaluation.size());
  CHECK(0 <= stage && stage < static_cast<int>(stages)) << "stage " << stage << " of " << stages;
  const int layers = static_cast<int>(network.layers.size());
  CHECK(!query.cells.empty()) << "a stage has a cell";
  const DType dtype = ComputeDType(network.precision);
  Kept kept;
  StageMemory memory;
  std::vector<TiedBytes> tied;
  for (const LayerRange& cell : query.cells) {
    CHECK(0 <= cell.first && cell.first < cell.last && cell.last <= layers)
        << "layers [" << cell.first << ", " << cell.last << ") of " << layers;
    for (int i = cell.first; i < cell.last; ++i) {
      AddLayer(network.layers[static_cast<size_t>(i)], query.optimizer, dtype, &kept);
    }
    memory.parameters += ValueBytes(network, CopiedValues(network, cell.first, cell.last));
    tied.push_back(TiedBytesOf(network, cell.first, cell.last));
  }
  const int64_t copy = dtype == DType::kF32 ? 0 : DTypeSize(dtype);  // that operations read
  memory.parameters +=
      kept.parameters * (kFloatBytes + copy) + kept.states * kFloatBytes + kept.base;
  memory.gradients = kept.gradients * kFloatBytes + kept.accumulators;
  const int64_t averaged = query.average ? kept.trained + kept.states : 0;
  memory.optimizer = (kept.optimizer + averaged) * kFloatBytes;
  for (const bool evaluation : {false, true}) {
    const std::span<const StageProgram> walked = evaluation ? query.evaluation : programs;
    if (walked.empty()) continue;
    const ActivationPeak peak = PeakOfActivations(network, walked, stage, evaluation, tied, query);
    int64_t bytes = peak.bytes;
    if (evaluation && query.decoding != nullptr) {
      CHECK_EQ(query.cells.size(), size_t{1}) << "cells of a stage that writes";
      bytes = query.decoding->Of(query.cells.front().first, query.cells.front().last, bytes);
    }
    if (evaluation && bytes <= memory.activations) continue;
    memory.decoding = bytes - peak.bytes;
    memory.activations = bytes;
    memory.fullest = peak.moment;
  }
  if (query.card) {
    memory.activations = SaturatingAdd(memory.activations, BesideOnCard(network, query));
  }
  return memory;
}

}  // namespace stagecoach
