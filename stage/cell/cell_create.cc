// Makes a cell: its layers, where their values lie, and what they begin with.
#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/errors/status.h"
#include "base/numbers/bfloat16.h"
#include "base/threads/progress.h"
#include "network/passes/head_chunks.h"
#include "stage/backends/bound_kernel.h"
#include "stage/cell/cell_state.h"
#include "stage/cell/host_blocks.h"
#include "stage/cell/initial_value.h"

namespace stagecoach {
namespace {

// fill(first, block): sets the numbers from `first` on. A base of adapters has a narrow type: it gets
// them rounded, block by block, with no float32 copy beside it.
absl::Status CopyNumbers(Backend& backend, const Tensor& target,
                         absl::FunctionRef<void(int64_t first, std::span<float> block)> fill) {
  if (target.dtype() == DType::kF32) return CopyBlocks<float>(backend, target, fill);
  CHECK(target.dtype() == DType::kBF16) << "a parameter of another type";
  std::vector<float> wide;
  return CopyBlocks<Bfloat16>(backend, target, [&](int64_t first, std::span<Bfloat16> block) {
    wide.resize(block.size());
    fill(first, wide);
    for (size_t i = 0; i < block.size(); ++i) block[i] = Bfloat16(wide[i]);
  });
}

// What parameters begin with.
struct Beginning {
  uint64_t seed = 0;
  const Cell::Given& given;

  // False: nothing is given for it, and `target` is as it was.
  absl::StatusOr<bool> SetGiven(const std::string& name, const Tensor& target,
                                Backend& backend) const {
    if (!given) return false;
    ASSIGN_OR_RETURN(const bool there, given(name, {}));
    if (!there) return false;
    std::vector<float> values(static_cast<size_t>(target.elements()));
    RETURN_IF_ERROR(given(name, values).status());
    TickProgress();
    RETURN_IF_ERROR(CopyNumbers(backend, target, [&](int64_t first, std::span<float> block) {
      std::copy_n(values.begin() + first, block.size(), block.begin());
    }));
    return true;
  }

  absl::Status Set(const ParameterSpec& spec, int layer, const Tensor& target,
                   Backend& backend) const {
    ASSIGN_OR_RETURN(const bool set, SetGiven(spec.name, target, backend));
    if (set) return absl::OkStatus();
    return CopyNumbers(backend, target, [&](int64_t first, std::span<float> values) {
      SetInitialValues(spec, seed, layer, first, values);
    });
  }
};

absl::Status SetLayer(LayerRunner& layer, const Beginning& beginning, int index, Backend& backend) {
  for (Parameter& parameter : layer.parameters()) {
    if (parameter.spec.tied()) continue;
    RETURN_IF_ERROR(beginning.Set(parameter.spec, index, parameter.value, backend));
  }
  for (LayerState& state : layer.states()) {
    backend.Fill(state.value, state.spec.initial);
    RETURN_IF_ERROR(beginning.SetGiven(state.spec.name, state.value, backend).status());
  }
  return absl::OkStatus();
}

// What the owners of the copies begin with.
absl::Status SetInitialCopies(const TiedExchange& ties, const Beginning& beginning,
                              Backend& backend) {
  for (const TiedExchange::Copy& copy : ties.copies()) {
    const auto set = [&](const Tensor& wide) {
      return beginning.Set(copy.owner, copy.owner_layer, wide, backend);
    };
    RETURN_IF_ERROR(Annotate(SetCopy(copy, backend, set), copy.owner.name));
  }
  return absl::OkStatus();
}

// Of two shares of a value's gradient, as the layers' own lists add them.
absl::StatusOr<Kernel> PrepareSum(Backend& backend, const ValueType& type, DType activation) {
  return PrepareBound(backend, {.operation = "add"}, {{type, type}, {type}, {}}, activation);
}

std::vector<WireId> Joined(std::vector<WireId> first, const std::vector<WireId>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

bool Holds(const std::vector<WireId>& ids, WireId id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

// None: it goes as a whole.
std::optional<HeadChunkLimits> ChunksOfHead(const Network& network, const Backend& backend) {
  return HeadGoesByChunks(network) ? backend.HeadChunks() : std::nullopt;
}

}  // namespace

std::vector<size_t> Cell::State::PlacesOf(const std::vector<WireId>& ids) {
  std::vector<size_t> found;
  for (const WireId id : ids) found.push_back(places.emplace(id, places.size()).first->second);
  return found;
}

void Cell::State::PlaceWires(const Network& network, int last_run) {
  wires = WiresOfCell(network, first_layer, last_layer);
  const std::vector<WireId> all = Joined(wires.loaded, wires.received);
  inputs = PlacesOf(all);
  const auto layer_reads = [&](WireId id) {
    const auto begin = network.layers.begin();
    return std::any_of(begin + first_layer, begin + last_layer,
                       [id](const NetworkLayer& layer) { return Holds(layer.inputs, id); });
  };
  std::vector<WireId> read_wires;
  for (const WireId id : all) {
    // What rides past the last layers is the loss's, which comes behind the recompute.
    const bool loss_reads = last_of_network && Holds(wires.sent, id);
    if (loss_reads || layer_reads(id)) read_wires.push_back(id);
  }
  read = PlacesOf(read_wires);
  for (int i = first_layer; i < last_layer; ++i) {
    PlacesOf(network.layers[i].outputs);
    for (const WireId id : network.layers[i].inputs) last_readers[id] = i;
  }
  const CellWires run = WiresOfCell(network, first_layer, last_run);
  for (const WireId id : run.sent) last_readers[id] = last_layer;
  sent = PlacesOf(run.sent);
  received_gradients = PlacesOf(run.received_gradients);
  sent_gradients = PlacesOf(wires.sent_gradients);
}

absl::Status Cell::State::PlaceLayer(const Network& network, const NetworkLayer& expanded,
                                     std::unique_ptr<LayerRunner> runner) {
  PlacedLayer layer{.runner = std::move(runner), .label = expanded.label};
  layer.inputs = PlacesOf(expanded.inputs);
  layer.outputs = PlacesOf(expanded.outputs);
  for (size_t i = 0; i < expanded.inputs.size(); ++i) {
    const WireId id = expanded.inputs[i];
    layer.last.push_back(last_readers.at(id) == expanded.index);
    if (!network.wire(id).gradient) continue;
    layer.input_gradients.push_back(layer.inputs[i]);
    ASSIGN_OR_RETURN(layer.sums.emplace_back(),
                     PrepareSum(*backend, network.wire(id).type, ComputeDType(network.precision)));
  }
  for (size_t i = 0; i < expanded.outputs.size(); ++i) {
    if (network.wire(expanded.outputs[i]).gradient) {
      layer.output_gradients.push_back(layer.outputs[i]);
    }
  }
  layers.push_back(std::move(layer));
  return absl::OkStatus();
}

std::map<ParameterUse, Parameter*> Cell::State::TiedUses(const Network& network) const {
  std::map<ParameterUse, Parameter*> uses;
  const auto add = [&](const ParameterUse& use) {
    if (use.layer < first_layer || use.layer >= last_layer) return;
    const PlacedLayer& layer = layers[static_cast<size_t>(use.layer - first_layer)];
    uses[use] = &layer.runner->parameters()[static_cast<size_t>(use.index)];
  };
  for (const TiedParameter& tied : TiedParameters(network)) {
    add(tied.owner);
    for (const ParameterUse& use : tied.users) add(use);
  }
  return uses;
}

absl::StatusOr<std::unique_ptr<Cell>> Cell::Create(const Network& network, int first_layer,
                                                   int last_layer, std::optional<uint64_t> seed,
                                                   int micro_batches, Backend& backend,
                                                   const Given& given, Head head) {
  const int layers = static_cast<int>(network.layers.size());
  CHECK(0 <= first_layer && first_layer < last_layer && last_layer <= layers)
      << "layers [" << first_layer << ", " << last_layer << ") of " << layers;
  CHECK_GT(micro_batches, 0);
  auto state = std::make_unique<State>();
  state->first_layer = first_layer;
  state->last_layer = last_layer;
  state->last_of_network = last_layer == layers;
  state->has_backward = last_layer > FirstTrainedLayer(network);
  state->backend = &backend;
  state->micro_batches.resize(micro_batches);
  const bool may_be_chunked = state->last_of_network && head == Head::kAsBackendSays;
  const auto chunks = may_be_chunked ? ChunksOfHead(network, backend) : std::nullopt;
  std::optional<Network> by_rows;  // who runs the last layer sees rows
  if (chunks.has_value()) by_rows = HeadByRows(network);
  const int last_run = chunks.has_value() ? last_layer - 1 : last_layer;
  state->PlaceWires(network, last_run);
  LayerRunner::Values values;
  for (int index = first_layer; index < last_layer; ++index) {
    const NetworkLayer& expanded = network.layers[index];
    const std::string where = absl::StrCat("layer ", index, " (", expanded.label, ")");
    const Network& run_as = index < last_run ? network : *by_rows;
    ASSIGN_OR_RETURN(std::unique_ptr<LayerRunner> layer,
                     Annotate(LayerRunner::Create(run_as, run_as.layers[static_cast<size_t>(index)],
                                                  backend, &values),
                              where));
    if (seed.has_value()) {
      RETURN_IF_ERROR(Annotate(SetLayer(*layer, Beginning{*seed, given}, index, backend), where));
    }
    RETURN_IF_ERROR(Annotate(state->PlaceLayer(network, expanded, std::move(layer)), where));
  }
  if (state->last_of_network) {
    ASSIGN_OR_RETURN(
        state->objective,
        Annotate(ObjectiveRunner::Create(by_rows.has_value() ? *by_rows : network, backend),
                 "objective"));
  }
  if (chunks.has_value()) {
    const WireId x = network.layers.back().inputs.front();
    state->head.emplace(HeadChunkRows(network, *chunks), network.wire(x).gradient,
                        *state->layers.back().runner, *state->objective, backend);
  }
  ASSIGN_OR_RETURN(state->ties, TiedExchange::Create(network, first_layer, last_layer,
                                                     state->TiedUses(network), backend));
  if (seed.has_value()) {
    RETURN_IF_ERROR(SetInitialCopies(*state->ties, Beginning{*seed, given}, backend));
  }
  auto cell = std::unique_ptr<Cell>(new Cell(std::move(state)));
  const auto trained = static_cast<int64_t>(cell->trained().size());
  ASSIGN_OR_RETURN(cell->state_->norms, MakeTensor(backend.allocator(), MemoryKind::kWorkspace,
                                                   DType::kF64, Shape{trained}));
  if (seed.has_value()) cell->RefreshCompute();
  return cell;
}

}  // namespace stagecoach
