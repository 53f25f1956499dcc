#include "stage/cell/cell_state.h"

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/errors/status.h"

namespace stagecoach {
namespace {

const char* LifeName(Life life) {
  switch (life) {
    case Life::kAbsent:
      return "absent";
    case Life::kBoundary:
      return "boundary only";
    case Life::kStashed:
      return "stashed";
    case Life::kInputDone:
      return "weight part to come";
  }
  return "?";
}

}  // namespace

Cell::State::MicroBatch& Cell::State::Find(MicroBatchId id, Life expected) {
  CHECK(id.valid() && id.value < static_cast<int>(micro_batches.size()))
      << "micro-batch " << id.value << " of " << micro_batches.size();
  MicroBatch& found = micro_batches[id.value];
  CHECK(found.life == expected) << "micro-batch " << id.value << " is " << LifeName(found.life)
                                << ", not " << LifeName(expected);
  return found;
}

void Cell::State::Place(const std::vector<size_t>& at, Tensors tuple, Tensors* table) const {
  CHECK_EQ(at.size(), tuple.size())
      << "values of layers [" << first_layer << ", " << last_layer << ")";
  table->resize(places.size());
  for (size_t i = 0; i < at.size(); ++i) (*table)[at[i]] = std::move(tuple[i]);
}

Tensors Cell::State::Collect(const std::vector<size_t>& at, const Tensors& table) {
  Tensors tuple;
  for (const size_t place : at) tuple.push_back(table[place]);
  return tuple;
}

absl::Status Cell::State::Run(Tensors* table, const ForwardContext& context,
                              std::vector<Stash>* stashes) {
  const CallsOfLists calls(*backend);
  if (stashes != nullptr) stashes->assign(run_layers(), Stash());
  for (size_t i = 0; i < run_layers(); ++i) {
    const PlacedLayer& layer = layers[i];
    Tensors inputs = Collect(layer.inputs, *table);
    for (size_t k = 0; k < inputs.size(); ++k) {
      if (layer.last[k]) (*table)[layer.inputs[k]].Reset();
    }
    const bool fold = !has_backward && context.training;
    Stash once;
    Stash* const stash = fold ? &once : stashes == nullptr ? nullptr : &(*stashes)[i];
    absl::StatusOr<Tensors> outputs = layer.runner->Forward(std::move(inputs), context, stash);
    if (!outputs.ok()) return At("forward", i, context, outputs.status());
    if (fold) {
      const absl::Status folded = layer.runner->BackwardWeight(std::move(once));
      if (!folded.ok()) return At("statistics", i, context, folded);
    }
    Place(layer.outputs, *std::move(outputs), table);
    TickProgress();
  }
  return absl::OkStatus();
}

absl::Status Cell::State::AddShare(const Kernel& add, const ForwardContext& context, Tensor share,
                                   Tensor* sum) const {
  if (!sum->valid()) {
    *sum = std::move(share);
    return absl::OkStatus();
  }
  const bool shared = sum->buffer().use_count() > 1;  // somebody else reads that share too
  Tensors shares = {*sum, std::move(share)}, both = {*sum};
  if (shared) {
    ASSIGN_OR_RETURN(both[0], MakeTensor(backend->allocator(), MemoryKind::kActivations,
                                         sum->dtype(), sum->shape()));
  }
  add({context}, {stagecoach::PlacesOf(shares), stagecoach::PlacesOf(both), Operands()});
  *sum = std::move(both[0]);
  return absl::OkStatus();
}

absl::Status Cell::State::At(const char* phase, size_t i, const ForwardContext& context,
                             const absl::Status& status) const {
  return Annotate(
      status, absl::StrCat(phase, " of layer ", first_layer + i, " (", layers[i].label, "), step ",
                           context.step, ", micro-batch ", context.micro_batch.value));
}

std::vector<Parameter*> Cell::State::Parameters() const {
  std::vector<Parameter*> all;
  for (const PlacedLayer& layer : layers) {
    for (Parameter& parameter : layer.runner->parameters()) all.push_back(&parameter);
  }
  return all;
}

}  // namespace stagecoach
