#include "stage/cell/cell.h"

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/progress.h"
#include "base/status.h"
#include "stage/cell/initial_value.h"

namespace stagecoach {
namespace {

// Where a micro-batch is in its life; the names of the header's drawing.
enum class Life { kAbsent, kBoundary, kStashed, kInputDone };

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

struct MicroBatch {
  Life life = Life::kAbsent;
  ForwardContext context;
  Tensors inputs;              // boundary only: those that the layers read
  std::vector<Stash> stashes;  // one a layer
  Tensors outputs;             // last stage only, until Backward
};

absl::Status SetInitialValues(LayerRunner& layer, uint64_t seed, int index, Backend& backend) {
  for (Parameter& parameter : layer.parameters()) {
    if (parameter.spec.tied()) continue;
    const std::vector<float> values = InitialValue(parameter.spec, seed, index);
    TickProgress();
    backend.CopyFromHost(std::as_bytes(std::span(values)), parameter.value);
    RETURN_IF_ERROR(backend.Synchronize());  // `values` must outlive a queued copy
  }
  for (LayerState& state : layer.states()) backend.Fill(state.value, state.spec.initial);
  return absl::OkStatus();
}

// What the owners of the copies begin with.
absl::Status SetInitialCopies(const TiedExchange& ties, uint64_t seed, Backend& backend) {
  for (const TiedExchange::Copy& copy : ties.copies()) {
    const std::vector<float> values = InitialValue(copy.owner, seed, copy.owner_layer);
    TickProgress();
    const auto set = [&](const Tensor& wide) -> absl::Status {
      backend.CopyFromHost(std::as_bytes(std::span(values)), wide);
      return backend.Synchronize();
    };
    RETURN_IF_ERROR(Annotate(SetCopy(copy, backend, set), copy.owner.name));
  }
  return absl::OkStatus();
}

// A layer, and where its values lie in the table of the cell's wires.
struct PlacedLayer {
  std::unique_ptr<LayerRunner> runner;
  std::string label;
  std::vector<size_t> inputs, outputs;
  std::vector<bool> last;  // of the inputs: nobody reads it afterwards
  std::vector<size_t> output_gradients, input_gradients;  // those that have one
  std::vector<Kernel> sums;  // of each of the input gradients: adds two shares
};

// Of two shares of a value's gradient, as the layers' own lists add them.
absl::StatusOr<Kernel> PrepareSum(Backend& backend, const ValueType& type, DType activation) {
  return backend.Prepare({.operation = "add"}, {{type, type}, {type}, {}}, activation);
}

std::vector<WireId> Joined(std::vector<WireId> first, const std::vector<WireId>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

bool Holds(const std::vector<WireId>& ids, WireId id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

}  // namespace

struct Cell::State {
  int first_layer = 0, last_layer = 0;
  bool last_of_model = false;
  bool has_backward = false;
  Backend* backend = nullptr;
  CellWires wires;
  std::map<WireId, size_t> places;     // in a table of all wires of the cell
  std::map<WireId, int> last_readers;  // here; of what is sent: behind the last layer
  std::vector<size_t> inputs, sent;    // places
  std::vector<size_t> read;            // those of `inputs` that layers read
  std::vector<size_t> received_gradients, sent_gradients;
  std::vector<PlacedLayer> layers;
  std::unique_ptr<ObjectiveRunner> objective;  // on the last stage
  std::unique_ptr<TiedExchange> ties;
  Tensor norms;  // F64, one a trained parameter in layer order: read back by one copy
  std::vector<MicroBatch> micro_batches;

  MicroBatch& Find(MicroBatchId id, Life expected) {
    CHECK(id.valid() && id.value < static_cast<int>(micro_batches.size()))
        << "micro-batch " << id.value << " of " << micro_batches.size();
    MicroBatch& found = micro_batches[id.value];
    CHECK(found.life == expected) << "micro-batch " << id.value << " is " << LifeName(found.life)
                                  << ", not " << LifeName(expected);
    return found;
  }

  std::vector<size_t> PlacesOf(const std::vector<WireId>& ids) {
    std::vector<size_t> found;
    for (const WireId id : ids) found.push_back(places.emplace(id, places.size()).first->second);
    return found;
  }

  void Place(const std::vector<size_t>& at, Tensors tuple, Tensors* table) const {
    CHECK_EQ(at.size(), tuple.size())
        << "values of layers [" << first_layer << ", " << last_layer << ")";
    table->resize(places.size());
    for (size_t i = 0; i < at.size(); ++i) (*table)[at[i]] = std::move(tuple[i]);
  }
  static Tensors Collect(const std::vector<size_t>& at, const Tensors& table) {
    Tensors tuple;
    for (const size_t place : at) tuple.push_back(table[place]);
    return tuple;
  }

  // Runs the layers on what lies in the table; stashes null: keeps nothing. What has no backward to come is folded
  // for the states at once.
  absl::Status Run(Tensors* table, const ForwardContext& context, std::vector<Stash>* stashes) {
    if (stashes != nullptr) stashes->assign(layers.size(), Stash());
    for (size_t i = 0; i < layers.size(); ++i) {
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

  // One pass over the layers from the last to the first. `run` gives the gradients of a layer's inputs for
  // those of its outputs.
  template <typename RunLayer>
  absl::StatusOr<Tensors> RunBack(const char* phase, Tensors gradients,
                                  const ForwardContext& context, RunLayer run) {
    Tensors table;
    Place(received_gradients, std::move(gradients), &table);
    for (size_t i = layers.size(); i-- > 0;) {
      const PlacedLayer& layer = layers[i];
      Tensors behind = Collect(layer.output_gradients, table);
      for (const size_t place : layer.output_gradients) table[place].Reset();
      absl::StatusOr<Tensors> shares = run(i, std::move(behind));
      if (!shares.ok()) return At(phase, i, context, shares.status());
      for (size_t k = 0; k < shares->size(); ++k) {
        Tensor& sum = table[layer.input_gradients[k]];
        const absl::Status status = AddShare(layer.sums[k], context, std::move((*shares)[k]), &sum);
        if (!status.ok()) return At(phase, i, context, status);
      }
      TickProgress();
    }
    return Collect(sent_gradients, table);
  }

  // What layers behind gave comes first, and each sum is rounded once, wherever the cuts are.
  absl::Status AddShare(const Kernel& add, const ForwardContext& context, Tensor share,
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

  absl::Status At(const char* phase, size_t i, const ForwardContext& context,
                  const absl::Status& status) const {
    return Annotate(status, absl::StrCat(phase, " of layer ", first_layer + i, " (",
                                         layers[i].label, "), step ", context.step,
                                         ", micro-batch ", context.micro_batch.value));
  }

  // Tied ones too.
  std::vector<Parameter*> Parameters() const {
    std::vector<Parameter*> all;
    for (const PlacedLayer& layer : layers) {
      for (Parameter& parameter : layer.runner->parameters()) all.push_back(&parameter);
    }
    return all;
  }
  // Of this cell, those that are tied and those that others are tied to.
  std::map<ParameterUse, Parameter*> TiedUses(const Network& model) const {
    std::map<ParameterUse, Parameter*> uses;
    const auto add = [&](const ParameterUse& use) {
      if (use.layer < first_layer || use.layer >= last_layer) return;
      const PlacedLayer& layer = layers[static_cast<size_t>(use.layer - first_layer)];
      uses[use] = &layer.runner->parameters()[static_cast<size_t>(use.index)];
    };
    for (const TiedParameter& tied : TiedParameters(model)) {
      add(tied.owner);
      for (const ParameterUse& use : tied.users) add(use);
    }
    return uses;
  }
  void PlaceWires(const Network& model);
  absl::Status PlaceLayer(const Network& model, const NetworkLayer& expanded,
                          std::unique_ptr<LayerRunner> runner);
};

void Cell::State::PlaceWires(const Network& model) {
  wires = WiresOfCell(model, first_layer, last_layer);
  const std::vector<WireId> all = Joined(wires.loaded, wires.received);
  inputs = PlacesOf(all);
  std::vector<WireId> read_wires;
  for (const WireId id : all) {
    for (int i = first_layer; i < last_layer; ++i) {
      if (!Holds(model.layers[i].inputs, id)) continue;
      read_wires.push_back(id);
      break;
    }
  }
  read = PlacesOf(read_wires);
  for (int i = first_layer; i < last_layer; ++i) {
    PlacesOf(model.layers[i].outputs);
    for (const WireId id : model.layers[i].inputs) last_readers[id] = i;
  }
  for (const WireId id : wires.sent) last_readers[id] = last_layer;
  sent = PlacesOf(wires.sent);
  received_gradients = PlacesOf(wires.received_gradients);
  sent_gradients = PlacesOf(wires.sent_gradients);
}

absl::Status Cell::State::PlaceLayer(const Network& model, const NetworkLayer& expanded,
                                     std::unique_ptr<LayerRunner> runner) {
  PlacedLayer layer{.runner = std::move(runner), .label = expanded.label};
  layer.inputs = PlacesOf(expanded.inputs);
  layer.outputs = PlacesOf(expanded.outputs);
  for (size_t i = 0; i < expanded.inputs.size(); ++i) {
    const WireId id = expanded.inputs[i];
    layer.last.push_back(last_readers.at(id) == expanded.index);
    if (!model.wire(id).gradient) continue;
    layer.input_gradients.push_back(layer.inputs[i]);
    ASSIGN_OR_RETURN(layer.sums.emplace_back(),
                     PrepareSum(*backend, model.wire(id).type, ComputeDType(model.precision)));
  }
  for (size_t i = 0; i < expanded.outputs.size(); ++i) {
    if (model.wire(expanded.outputs[i]).gradient) {
      layer.output_gradients.push_back(layer.outputs[i]);
    }
  }
  layers.push_back(std::move(layer));
  return absl::OkStatus();
}

Cell::Cell(std::unique_ptr<State> state) : state_(std::move(state)) {}
Cell::~Cell() = default;

absl::StatusOr<std::unique_ptr<Cell>> Cell::Create(const Network& model, int first_layer,
                                                   int last_layer, std::optional<uint64_t> seed,
                                                   int micro_batches, Backend& backend) {
  const int layers = static_cast<int>(model.layers.size());
  CHECK(0 <= first_layer && first_layer < last_layer && last_layer <= layers)
      << "layers [" << first_layer << ", " << last_layer << ") of " << layers;
  CHECK_GT(micro_batches, 0);
  auto state = std::make_unique<State>();
  state->first_layer = first_layer;
  state->last_layer = last_layer;
  state->last_of_model = last_layer == layers;
  state->has_backward = last_layer > FirstTrainedLayer(model);
  state->backend = &backend;
  state->micro_batches.resize(micro_batches);
  state->PlaceWires(model);
  LayerRunner::Values values;
  for (int index = first_layer; index < last_layer; ++index) {
    const NetworkLayer& expanded = model.layers[index];
    const std::string where = absl::StrCat("layer ", index, " (", expanded.label, ")");
    ASSIGN_OR_RETURN(std::unique_ptr<LayerRunner> layer,
                     Annotate(LayerRunner::Create(model, expanded, backend, &values), where));
    if (seed.has_value()) {
      RETURN_IF_ERROR(Annotate(SetInitialValues(*layer, *seed, index, backend), where));
    }
    RETURN_IF_ERROR(Annotate(state->PlaceLayer(model, expanded, std::move(layer)), where));
  }
  if (state->last_of_model) {
    ASSIGN_OR_RETURN(state->objective,
                     Annotate(ObjectiveRunner::Create(model, backend), "objective"));
  }
  ASSIGN_OR_RETURN(state->ties, TiedExchange::Create(model, first_layer, last_layer,
                                                     state->TiedUses(model), backend));
  if (seed.has_value()) RETURN_IF_ERROR(SetInitialCopies(*state->ties, *seed, backend));
  auto cell = std::unique_ptr<Cell>(new Cell(std::move(state)));
  const auto trained = static_cast<int64_t>(cell->trained().size());
  ASSIGN_OR_RETURN(cell->state_->norms, MakeTensor(backend.allocator(), MemoryKind::kWorkspace,
                                                   DType::kF64, Shape{trained}));
  if (seed.has_value()) cell->RefreshCompute();
  return cell;
}

absl::StatusOr<Tensors> Cell::Forward(Tensors inputs, const ForwardContext& context,
                                      bool keep_stash) {
  MicroBatch& micro_batch = state_->Find(context.micro_batch, Life::kAbsent);
  if (!state_->has_backward) {
    Tensors table;
    state_->Place(state_->inputs, std::move(inputs), &table);
    RETURN_IF_ERROR(state_->Run(&table, context, nullptr));
    return State::Collect(state_->sent, table);
  }
  MicroBatch next;
  next.context = context;
  next.life = keep_stash ? Life::kStashed : Life::kBoundary;
  Tensors table;
  state_->Place(state_->inputs, std::move(inputs), &table);
  if (!keep_stash) next.inputs = State::Collect(state_->read, table);
  if (!keep_stash && state_->last_of_model) {  // the recompute gives the loss what it reads
    micro_batch = std::move(next);
    return Tensors();
  }
  RETURN_IF_ERROR(state_->Run(&table, context, keep_stash ? &next.stashes : nullptr));
  Tensors outputs = State::Collect(state_->sent, table);
  if (keep_stash && state_->last_of_model) next.outputs = outputs;
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
  MicroBatch& micro_batch = state_->Find(id, Life::kBoundary);
  std::vector<Stash> stashes;
  Tensors table;
  state_->Place(state_->read, micro_batch.inputs, &table);
  RETURN_IF_ERROR(state_->Run(&table, micro_batch.context, &stashes));
  micro_batch.life = Life::kStashed;
  micro_batch.inputs.clear();
  micro_batch.stashes = std::move(stashes);
  if (state_->last_of_model) micro_batch.outputs = State::Collect(state_->sent, table);
  return absl::OkStatus();
}

absl::StatusOr<Tensors> Cell::Backward(MicroBatchId id, Tensors output_gradients) {
  MicroBatch micro_batch = std::exchange(state_->Find(id, Life::kStashed), MicroBatch());
  micro_batch.outputs.clear();
  return state_->RunBack("backward", std::move(output_gradients), micro_batch.context,
                         [&](size_t i, Tensors gradients) {
                           return state_->layers[i].runner->Backward(
                               std::move(gradients), std::move(micro_batch.stashes[i]));
                         });
}

absl::StatusOr<Tensors> Cell::BackwardInput(MicroBatchId id, Tensors output_gradients) {
  MicroBatch& micro_batch = state_->Find(id, Life::kStashed);
  micro_batch.life = Life::kInputDone;
  micro_batch.outputs.clear();
  return state_->RunBack("backward input", std::move(output_gradients), micro_batch.context,
                         [&](size_t i, Tensors gradients) {
                           return state_->layers[i].runner->BackwardInput(std::move(gradients),
                                                                          &micro_batch.stashes[i]);
                         });
}

absl::Status Cell::BackwardWeight(MicroBatchId id) {
  MicroBatch micro_batch = std::exchange(state_->Find(id, Life::kInputDone), MicroBatch());
  for (size_t i = state_->layers.size(); i-- > 0;) {
    const absl::Status status =
        state_->layers[i].runner->BackwardWeight(std::move(micro_batch.stashes[i]));
    if (!status.ok()) return state_->At("backward weight", i, micro_batch.context, status);
    TickProgress();
  }
  return absl::OkStatus();
}

const Tensors& Cell::outputs(MicroBatchId id) const {
  CHECK(state_->last_of_model) << "only the last stage keeps outputs";
  return state_->Find(id, Life::kStashed).outputs;
}

void Cell::DropAllMicroBatches() {
  for (MicroBatch& micro_batch : state_->micro_batches) micro_batch = MicroBatch();
  if (state_->objective != nullptr) state_->objective->Drop();
  state_->ties->DropArrived();
}

absl::Status Cell::CommitStates() {
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
