#include "stage/cell/cell.h"

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
  Tensors inputs;              // boundary only
  std::vector<Stash> stashes;  // one a layer
  Tensors outputs;             // last stage only, until Backward
};

absl::Status SetInitialValues(LayerRunner& layer, uint64_t seed, int index, Backend& backend) {
  for (Parameter& parameter : layer.parameters()) {
    const std::vector<float> values = InitialValue(parameter.spec, seed, index);
    TickProgress();
    backend.CopyFromHost(std::as_bytes(std::span(values)), parameter.value);
    RETURN_IF_ERROR(backend.Synchronize());  // `values` must outlive a queued copy
  }
  return absl::OkStatus();
}

}  // namespace

struct Cell::State {
  int first_layer = 0, last_layer = 0;
  bool last_of_model = false;
  Backend* backend = nullptr;
  std::vector<std::string> labels;
  std::vector<std::unique_ptr<LayerRunner>> layers;
  Tensor norms;  // F64, one a parameter in layer order: read back by one copy
  std::vector<MicroBatch> micro_batches;

  MicroBatch& Find(MicroBatchId id, Life expected) {
    CHECK(id.valid() && id.value < static_cast<int>(micro_batches.size()))
        << "micro-batch " << id.value << " of " << micro_batches.size();
    MicroBatch& found = micro_batches[id.value];
    CHECK(found.life == expected) << "micro-batch " << id.value << " is " << LifeName(found.life)
                                  << ", not " << LifeName(expected);
    return found;
  }

  // Runs the layers; stashes null: keeps nothing.
  absl::StatusOr<Tensors> Run(Tensors tensors, const ForwardContext& context,
                              std::vector<Stash>* stashes) {
    if (stashes != nullptr) stashes->assign(layers.size(), Stash());
    for (size_t i = 0; i < layers.size(); ++i) {
      Stash* const stash = stashes == nullptr ? nullptr : &(*stashes)[i];
      absl::StatusOr<Tensors> outputs = layers[i]->Forward(std::move(tensors), context, stash);
      if (!outputs.ok()) return At("forward", i, context, outputs.status());
      tensors = *std::move(outputs);
      TickProgress();
    }
    return tensors;
  }

  absl::Status At(const char* phase, size_t i, const ForwardContext& context,
                  const absl::Status& status) const {
    return Annotate(status,
                    absl::StrCat(phase, " of layer ", first_layer + i, " (", labels[i], "), step ",
                                 context.step, ", micro-batch ", context.micro_batch.value));
  }
};

Cell::Cell(std::unique_ptr<State> state) : state_(std::move(state)) {}
Cell::~Cell() = default;

absl::StatusOr<std::unique_ptr<Cell>> Cell::Create(const ExpandedModel& model, int first_layer,
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
  state->backend = &backend;
  state->micro_batches.resize(micro_batches);
  int64_t parameters = 0;
  for (int index = first_layer; index < last_layer; ++index) {
    const ExpandedLayer& expanded = model.layers[index];
    const std::string where = absl::StrCat("layer ", index, " (", expanded.label, ")");
    ASSIGN_OR_RETURN(std::unique_ptr<LayerRunner> layer,
                     Annotate(LayerRunner::Create(model, expanded, backend), where));
    if (seed.has_value()) {
      RETURN_IF_ERROR(Annotate(SetInitialValues(*layer, *seed, index, backend), where));
    }
    parameters += static_cast<int64_t>(layer->parameters().size());
    state->labels.push_back(expanded.label);
    state->layers.push_back(std::move(layer));
  }
  ASSIGN_OR_RETURN(state->norms, MakeTensor(backend.allocator(), MemoryKind::kWorkspace,
                                            DType::kF64, Shape{parameters}));
  auto cell = std::unique_ptr<Cell>(new Cell(std::move(state)));
  if (seed.has_value()) cell->RefreshCompute();
  return cell;
}

absl::StatusOr<Tensors> Cell::Forward(Tensors inputs, const ForwardContext& context,
                                      bool keep_stash) {
  MicroBatch& micro_batch = state_->Find(context.micro_batch, Life::kAbsent);
  MicroBatch next;
  next.context = context;
  next.life = keep_stash ? Life::kStashed : Life::kBoundary;
  if (!keep_stash) next.inputs = inputs;
  ASSIGN_OR_RETURN(Tensors outputs,
                   state_->Run(std::move(inputs), context, keep_stash ? &next.stashes : nullptr));
  if (keep_stash && state_->last_of_model) next.outputs = outputs;
  micro_batch = std::move(next);
  return outputs;
}

absl::StatusOr<Tensors> Cell::Evaluate(Tensors inputs, const ForwardContext& context) {
  ForwardContext evaluation = context;
  evaluation.training = false;
  return state_->Run(std::move(inputs), evaluation, nullptr);
}

absl::Status Cell::Recompute(MicroBatchId id) {
  MicroBatch& micro_batch = state_->Find(id, Life::kBoundary);
  std::vector<Stash> stashes;
  ASSIGN_OR_RETURN(Tensors outputs, state_->Run(micro_batch.inputs, micro_batch.context, &stashes));
  micro_batch.life = Life::kStashed;
  micro_batch.inputs.clear();
  micro_batch.stashes = std::move(stashes);
  if (state_->last_of_model) micro_batch.outputs = std::move(outputs);
  return absl::OkStatus();
}

absl::StatusOr<Tensors> Cell::Backward(MicroBatchId id, Tensors output_gradients) {
  MicroBatch micro_batch = std::exchange(state_->Find(id, Life::kStashed), MicroBatch());
  micro_batch.outputs.clear();
  Tensors gradients = std::move(output_gradients);
  for (size_t i = state_->layers.size(); i-- > 0;) {
    absl::StatusOr<Tensors> result =
        state_->layers[i]->Backward(std::move(gradients), std::move(micro_batch.stashes[i]));
    if (!result.ok()) return state_->At("backward", i, micro_batch.context, result.status());
    TickProgress();
    gradients = *std::move(result);
  }
  return gradients;
}

absl::StatusOr<Tensors> Cell::BackwardInput(MicroBatchId id, Tensors output_gradients) {
  MicroBatch& micro_batch = state_->Find(id, Life::kStashed);
  micro_batch.life = Life::kInputDone;
  micro_batch.outputs.clear();
  Tensors gradients = std::move(output_gradients);
  for (size_t i = state_->layers.size(); i-- > 0;) {
    absl::StatusOr<Tensors> result =
        state_->layers[i]->BackwardInput(std::move(gradients), &micro_batch.stashes[i]);
    if (!result.ok()) return state_->At("backward input", i, micro_batch.context, result.status());
    TickProgress();
    gradients = *std::move(result);
  }
  return gradients;
}

absl::Status Cell::BackwardWeight(MicroBatchId id) {
  MicroBatch micro_batch = std::exchange(state_->Find(id, Life::kInputDone), MicroBatch());
  for (size_t i = state_->layers.size(); i-- > 0;) {
    const absl::Status status =
        state_->layers[i]->BackwardWeight(std::move(micro_batch.stashes[i]));
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
}

void Cell::ZeroGradients() {
  Tensors gradients;
  for (Parameter* parameter : parameters()) gradients.push_back(parameter->gradient);
  state_->backend->FillAll(gradients, 0.0f);
}

void Cell::RefreshCompute() {
  for (Parameter* parameter : parameters()) {
    if (parameter->compute.buffer() == parameter->value.buffer()) continue;
    state_->backend->Convert(parameter->value, parameter->compute);
  }
}

int Cell::first_layer() const { return state_->first_layer; }
int Cell::last_layer() const { return state_->last_layer; }

std::vector<Parameter*> Cell::parameters() {
  std::vector<Parameter*> all;
  for (const std::unique_ptr<LayerRunner>& layer : state_->layers) {
    for (Parameter& parameter : layer->parameters()) all.push_back(&parameter);
  }
  return all;
}

absl::StatusOr<std::vector<double>> Cell::LayerSquaredGradientNorms() {
  Backend& backend = *state_->backend;
  std::vector<Backend::NormArgs> all;
  for (Parameter* parameter : parameters()) {
    const auto slot = static_cast<int64_t>(all.size());
    all.push_back({parameter->gradient, state_->norms.Slice(slot, Shape{1})});
  }
  backend.SquaredNorms(all);
  std::vector<double> norms(all.size());
  backend.CopyToHost(state_->norms, std::as_writable_bytes(std::span(norms)));
  RETURN_IF_ERROR(backend.Synchronize());
  std::vector<double> layer_norms;
  size_t next = 0;
  for (const std::unique_ptr<LayerRunner>& layer : state_->layers) {
    double sum = 0.0;
    for (size_t i = 0; i < layer->parameters().size(); ++i) sum += norms[next++];
    layer_norms.push_back(sum);
  }
  return layer_norms;
}

}  // namespace stagecoach
