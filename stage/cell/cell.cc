#include "stage/cell/cell.h"

#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/errors/status.h"
#include "base/threads/progress.h"
#include "stage/cell/cell_state.h"

namespace stagecoach {

Cell::Cell(std::unique_ptr<State> state) : state_(std::move(state)) {}
Cell::~Cell() = default;

absl::StatusOr<Tensors> Cell::Forward(Tensors inputs, const ForwardContext& context,
                                      bool keep_stash) {
  State::MicroBatch& micro_batch = state_->Find(context.micro_batch, Life::kAbsent);
  if (!state_->has_backward) {
    Tensors table;
    state_->Place(state_->inputs, std::move(inputs), &table);
    RETURN_IF_ERROR(state_->Run(&table, context, nullptr));
    return State::Collect(state_->sent, table);
  }
  State::MicroBatch next;
  next.context = context;
  next.life = keep_stash ? Life::kStashed : Life::kBoundary;
  Tensors table;
  state_->Place(state_->inputs, std::move(inputs), &table);
  if (!keep_stash) next.inputs = State::Collect(state_->read, table);
  if (!keep_stash && state_->last_of_network) {  // the recompute gives the loss what it reads
    micro_batch = std::move(next);
    return Tensors();
  }
  RETURN_IF_ERROR(state_->Run(&table, context, keep_stash ? &next.stashes : nullptr));
  Tensors outputs = State::Collect(state_->sent, table);
  if (keep_stash && state_->last_of_network) next.outputs = outputs;
  micro_batch = std::move(next);
  return outputs;
}

absl::StatusOr<Tensors> Cell::Evaluate(Tensors inputs, const ForwardContext& context) {
  ForwardContext evaluation = context;
  evaluation.training = false;
  Tensors table;
  state_->Place(state_->inputs, std::move(inputs), &table);
  RETURN_IF_ERROR(state_->Run(&table, evaluation, nullptr));
  return State::Collect(state_->sent, table);
}

absl::Status Cell::Recompute(MicroBatchId id) {
  State::MicroBatch& micro_batch = state_->Find(id, Life::kBoundary);
  std::vector<Stash> stashes;
  Tensors table;
  state_->Place(state_->read, micro_batch.inputs, &table);
  RETURN_IF_ERROR(state_->Run(&table, micro_batch.context, &stashes));
  micro_batch.life = Life::kStashed;
  micro_batch.inputs.clear();
  micro_batch.stashes = std::move(stashes);
  if (state_->last_of_network) micro_batch.outputs = State::Collect(state_->sent, table);
  return absl::OkStatus();
}

absl::StatusOr<Tensors> Cell::Backward(MicroBatchId id, Tensors output_gradients) {
  State::MicroBatch micro_batch =
      std::exchange(state_->Find(id, Life::kStashed), State::MicroBatch());
  micro_batch.outputs.clear();
  return state_->RunBack("backward", std::move(output_gradients), micro_batch.context,
                         [&](size_t i, Tensors gradients) {
                           return state_->layers[i].runner->Backward(
                               std::move(gradients), std::move(micro_batch.stashes[i]));
                         });
}

absl::StatusOr<Tensors> Cell::BackwardInput(MicroBatchId id, Tensors output_gradients) {
  State::MicroBatch& micro_batch = state_->Find(id, Life::kStashed);
  micro_batch.life = Life::kInputDone;
  micro_batch.outputs.clear();
  return state_->RunBack("backward input", std::move(output_gradients), micro_batch.context,
                         [&](size_t i, Tensors gradients) {
                           return state_->layers[i].runner->BackwardInput(std::move(gradients),
                                                                          &micro_batch.stashes[i]);
                         });
}

absl::Status Cell::BackwardWeight(MicroBatchId id) {
  State::MicroBatch micro_batch =
      std::exchange(state_->Find(id, Life::kInputDone), State::MicroBatch());
  const CallsOfLists calls(*state_->backend);
  for (size_t i = state_->run_layers(); i-- > 0;) {
    const absl::Status status =
        state_->layers[i].runner->BackwardWeight(std::move(micro_batch.stashes[i]));
    if (!status.ok()) return state_->At("backward weight", i, micro_batch.context, status);
    TickProgress();
  }
  return absl::OkStatus();
}

const Tensors& Cell::outputs(MicroBatchId id) const {
  CHECK(state_->last_of_network) << "only the last stage keeps outputs";
  return state_->Find(id, Life::kStashed).outputs;
}

absl::StatusOr<Tensors> Cell::Loss(MicroBatchId id, ObjectiveRunner::Targets targets,
                                   const LookAtLogits& look) {
  State::MicroBatch& micro_batch = state_->Find(id, Life::kStashed);
  CHECK(state_->last_of_network) << "only the last stage has a loss";
  if (state_->head.has_value()) {  // what it reads is dropped as soon as it has been read
    const Tensors outputs = std::exchange(micro_batch.outputs, Tensors());
    CHECK_EQ(outputs.size(), size_t{1}) << "what the head reads of micro-batch " << id.value;
    absl::StatusOr<Tensors> gradients =
        state_->head->Train(micro_batch.context, outputs.front(), targets, look);
    if (gradients.ok()) return gradients;
    return state_->At("loss", state_->run_layers(), micro_batch.context, gradients.status());
  }
  const size_t place = state_->objective->output_place();
  RETURN_IF_ERROR(look(micro_batch.outputs[place], targets.values));
  return state_->objective->Train(micro_batch.context, micro_batch.outputs, std::move(targets));
}

absl::Status Cell::EvaluateLoss(const ForwardContext& context, Tensors outputs,
                                ObjectiveRunner::Targets targets, const LookAtLogits& look) {
  CHECK(state_->last_of_network) << "only the last stage has a loss";
  if (state_->head.has_value()) {
    CHECK_EQ(outputs.size(), size_t{1}) << "what the head reads";
    const absl::Status status = state_->head->Evaluate(context, outputs.front(), targets, look);
    return status.ok() ? status : state_->At("loss", state_->run_layers(), context, status);
  }
  const Tensor& output = outputs[state_->objective->output_place()];
  RETURN_IF_ERROR(look(output, targets.values));
  return state_->objective->Evaluate(context, output, std::move(targets));
}

void Cell::DropAllMicroBatches() {
  for (State::MicroBatch& micro_batch : state_->micro_batches) micro_batch = State::MicroBatch();
  if (state_->objective != nullptr) state_->objective->Drop();
  state_->ties->DropArrived();
}

absl::Status Cell::CommitStates() {
  const CallsOfLists calls(*state_->backend);
  for (size_t i = 0; i < state_->layers.size(); ++i) {
    const PlacedLayer& layer = state_->layers[i];
    RETURN_IF_ERROR(Annotate(
        layer.runner->CommitStates(),
        absl::StrCat("states of layer ", state_->first_layer + i, " (", layer.label, ")")));
  }
  return absl::OkStatus();
}

TiedExchange& Cell::ties() { return *state_->ties; }
ObjectiveRunner* Cell::objective() { return state_->objective.get(); }

void Cell::ZeroGradients() {
  Tensors gradients;
  for (Parameter* parameter : state_->Parameters()) {
    if (parameter->gradient.valid()) gradients.push_back(parameter->gradient);
  }
  for (const PlacedLayer& layer : state_->layers) {
    const Tensors& gathered = layer.runner->gathered();
    gradients.insert(gradients.end(), gathered.begin(), gathered.end());
  }
  state_->backend->FillAll(gradients, 0.0f);
}

void Cell::RefreshCompute() {
  for (Parameter* parameter : parameters()) {
    if (parameter->compute.buffer() == parameter->value.buffer()) continue;
    state_->backend->Convert(parameter->value, parameter->compute);
  }
}

const CellWires& Cell::wires() const { return state_->wires; }
int Cell::first_layer() const { return state_->first_layer; }
int Cell::last_layer() const { return state_->last_layer; }
bool Cell::has_backward() const { return state_->has_backward; }

std::vector<Parameter*> Cell::parameters() {
  std::vector<Parameter*> all = state_->Parameters();
  std::erase_if(all, [](const Parameter* parameter) { return parameter->spec.tied(); });
  return all;
}

std::vector<Parameter*> Cell::trained() {
  std::vector<Parameter*> all = parameters();
  std::erase_if(all, [](const Parameter* parameter) { return !parameter->spec.trained; });
  return all;
}

std::vector<LayerState*> Cell::states() {
  std::vector<LayerState*> all;
  for (const PlacedLayer& layer : state_->layers) {
    for (LayerState& state : layer.runner->states()) all.push_back(&state);
  }
  return all;
}

LayerRunner::Values Cell::Values() const {
  LayerRunner::Values values;
  for (const PlacedLayer& layer : state_->layers) layer.runner->AddTo(&values);
  return values;
}

absl::StatusOr<std::vector<double>> Cell::LayerSquaredGradientNorms() {
  Backend& backend = *state_->backend;
  std::vector<Backend::NormArgs> all;
  for (Parameter* parameter : trained()) {
    const auto slot = static_cast<int64_t>(all.size());
    all.push_back({parameter->gradient, state_->norms.Slice(slot, Shape{1})});
  }
  backend.SquaredNorms(all);
  std::vector<double> norms(all.size());
  backend.CopyToHost(state_->norms, std::as_writable_bytes(std::span(norms)));
  RETURN_IF_ERROR(backend.Synchronize());
  std::vector<double> layer_norms;
  size_t next = 0;
  for (const PlacedLayer& layer : state_->layers) {
    double sum = 0.0;
    for (const Parameter& parameter : layer.runner->parameters()) {
      if (parameter.spec.trained && !parameter.spec.tied()) sum += norms[next++];
    }
    layer_norms.push_back(sum);
  }
  return layer_norms;
}

}  // namespace stagecoach
