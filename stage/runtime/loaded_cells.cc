#include "stage/runtime/loaded_cells.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/errors/error_place.h"
#include "base/errors/status.h"
#include "base/threads/current_work.h"
#include "base/threads/work_words.h"
#include "network/passes/lora.h"
#include "plan/costs/host_memory.h"
#include "plan/costs/link_memory.h"
#include "plan/job/data_kinds.h"
#include "plan/schedules/job_schedule.h"
#include "stage/data/open_source.h"
#include "stage/layers/call_ways.h"
#include "stage/runtime/shard_tensors.h"
#include "stage/weights/weight_file.h"

namespace stagecoach {
namespace {

// Whether the cell's activations go to another stage.
bool SendsDown(const Partition& partition, int cell) {
  return cell + 1 < partition.cells() &&
         StageOf(partition.placement, cell) != StageOf(partition.placement, cell + 1);
}

absl::Status CheckPlacement(const LoadCommand& command, int layers) {
  const Partition& partition = command.partition;
  bool ascending = partition.cells() > 0 && partition.first_layers.front() == 0 &&
                   partition.first_layers.back() < layers;
  for (int c = 1; c < partition.cells(); ++c) {
    ascending = ascending && partition.first(c - 1) < partition.first(c);
  }
  if (!ascending) {
    return absl::InvalidArgumentError(absl::StrCat(
        "partition: first layers [", absl::StrJoin(partition.first_layers, ", "),
        "], expected 0 and then ascending below the ", layers, " layers of the model"));
  }
  if (command.stage.value < 0 || command.stage.value >= partition.stages()) {
    return absl::InvalidArgumentError(
        absl::StrCat("stage: ", command.stage.value, ", the partition has ", partition.stages()));
  }
  const bool complete =
      partition.placement.empty() || std::ssize(partition.placement) == partition.cells();
  ASSIGN_OR_RETURN(const ScheduleOptions asked,
                   ScheduleOptionsOf(command.spec, partition.stages(), layers));
  if (!complete || partition.placement != asked.placement) {
    return absl::InvalidArgumentError(absl::StrCat(
        "placement: [", absl::StrJoin(partition.placement, ", "), "] is not that of ", asked.kind,
        " on ", partition.stages(), " stages"));
  }
  const std::vector<int> cells = partition.CellsOfStage(command.stage.value);
  if (command.neighbours.size() != cells.size()) {
    return absl::InvalidArgumentError(absl::StrCat("neighbours: ", command.neighbours.size(),
                                                   " for ", cells.size(), " cells"));
  }
  for (size_t i = 0; i < cells.size(); ++i) {
    if (!SendsDown(partition, cells[i]) || !command.neighbours[i].downstream_address.empty()) {
      continue;
    }
    return absl::InvalidArgumentError(
        absl::StrCat("downstream_address: empty, cell ", cells[i], " of stage ",
                     command.stage.value, " is not the last one"));
  }
  return absl::OkStatus();
}

// Of all stages.
absl::StatusOr<std::vector<StageProgram>> MakePrograms(const LoadCommand& command,
                                                       const Network& network, int link_capacity,
                                                       bool forward_only) {
  ASSIGN_OR_RETURN(ScheduleOptions options,
                   ScheduleOptionsOf(command.spec, command.partition.stages(),
                                     static_cast<int64_t>(network.layers.size())));
  options.forward_only = forward_only;
  Schedule schedule = MakeSchedule(FitToNetwork(network, command.partition, std::move(options)));
  PipelineLimits limits;
  limits.link_capacity = link_capacity;
  RETURN_IF_ERROR(Annotate(ValidateSchedule(schedule, limits), "schedule"));
  return std::move(schedule.programs);
}

// The inputs that the executor asks for.
std::vector<std::string> ReadInputs(const Network& network, const std::vector<LayerRange>& cells) {
  std::vector<std::string> names;
  const auto add = [&](WireId id) {
    const std::string& name = network.input(id).name;
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  };
  for (const LayerRange& cell : cells) {
    const CellWires wires = WiresOfCell(network, cell.first, cell.last);
    for (const WireId id : wires.loaded) add(id);
    if (cell.last < static_cast<int>(network.layers.size())) continue;
    for (const WireId id : network.objective.inputs()) add(id);
  }
  return names;
}

absl::Status OpenData(const JobSpec& spec, const Network& network,
                      const std::vector<std::string>& reads, const DatasetManifest& expected,
                      const DataRoots& roots, LoadedCells* loaded) {
  absl::StatusOr<std::unique_ptr<BatchSource>> source = OpenSource(spec, network, reads, roots);
  TellWork("");
  if (!source.ok()) return DataError(source.status());
  loaded->data = *std::move(source);
  loaded->result.data = loaded->data->manifest();
  loaded->result.data_notes = loaded->data->notes();
  loaded->result.facts = loaded->data->facts();
  if (spec.evaluation.given() && AnswersForImages(network)) {
    if (std::vector<std::string> shown = loaded->data->Shown(); !shown.empty()) {
      loaded->result.shown = std::make_shared<const std::vector<std::string>>(std::move(shown));
    }
  }
  if (expected.sha256.empty() || expected == loaded->result.data) return absl::OkStatus();
  const DatasetManifest& found = loaded->result.data;
  return absl::FailedPreconditionError(absl::StrCat(
      spec.write.has_value() ? absl::StrCat("write.lines, data.", spec.data.kind, ".tokenizer")
                             : DataFilesText(spec.data),
      ": ", found.bytes, " bytes, sha256 ", found.sha256, "; the job was started with ",
      expected.bytes, " bytes, sha256 ", expected.sha256,
      "; put the original files back or submit a new job"));
}

// All stages run these.
struct Programs {
  std::vector<StageProgram> training, evaluation;
  std::optional<DecodingSizes> decoding;  // of texts
};

void OpenLinks(const LoadingParts& parts, const Programs& programs, LoadedCells* loaded) {
  const LoadCommand& command = loaded->command;
  const Partition& partition = command.partition;
  const Network& network = loaded->network();
  const int layers = static_cast<int>(network.layers.size());
  const int64_t samples = MicroBatchSize(ComputedSamples(command.spec, network),
                                         command.spec.training.micro_batches, 0);
  Allocator& allocator = parts.backend->link_allocator();
  for (size_t i = 0; i < loaded->cells.size(); ++i) {
    LoadedCells::One& own = loaded->cells[i];
    const CellNeighbours& neighbours = command.neighbours[i];
    const int cell = own.id.value;
    ArrivingMessages most =
        MessagesOfCell(network, partition.first(cell), partition.last(cell, layers), samples);
    if (programs.decoding.has_value()) {
      most.from_behind = std::max(most.from_behind, programs.decoding->rows_message);
    }
    BoundaryId edge{command.fence.job, command.fence.term, command.fence.generation};
    if (cell > 0 && SendsDown(partition, cell - 1)) {
      edge.above = CellId(cell - 1);
      own.upstream =
          parts.connector->Accept(edge, neighbours.upstream_name, allocator, most.from_before);
    }
    if (SendsDown(partition, cell)) {
      edge.above = own.id;
      own.downstream = parts.connector->Dial(neighbours.downstream_address, edge, allocator,
                                             most.from_behind);
    }
  }
  for (Link* const link : loaded->links()) link->SetReadyCallback(parts.link_ready);
}

// The weights that parameters and states begin with; null: none of a file's. A base of adapters
// begins each load, and a checkpoint has the rest.
absl::StatusOr<std::unique_ptr<WeightFile>> OpenWeights(const LoadingParts& parts,
                                                        const LoadedCells& loaded) {
  const LoadCommand& command = loaded.command;
  const bool has_base = HasBase(loaded.network());
  if (has_base && !command.spec.initialize.given()) {
    return absl::InvalidArgumentError(
        "initialize.from: is not given, and the network has adapters; name the weights that they "
        "adapt");
  }
  if (!command.spec.initialize.given() || (command.resumes() && !has_base)) return nullptr;
  return WeightFile::Open(*parts.weight_files, command.spec.initialize, loaded.network());
}

HostForecast ForecastOf(const LoadedCells& loaded, const Programs& programs, Backend& backend) {
  const LoadCommand& command = loaded.command;
  const int stage = command.stage.value, layers = static_cast<int>(loaded.network().layers.size());
  const bool writes = command.spec.write.has_value();
  std::span<const StageProgram> training, evaluation;
  if (!writes) training = programs.training;
  if (writes || command.spec.evaluation.given()) evaluation = programs.evaluation;
  return ForecastOnHost(command.spec, loaded.network(), training, evaluation,
                        {.stage = stage,
                         .cells = command.partition.LayersOf(stage, layers),
                         .limit = backend.allocator().Use().limit,
                         .host = backend.Host(),
                         .decoding = programs.decoding.has_value() ? &*programs.decoding : nullptr,
                         .batch_size = ComputedSamples(command.spec, loaded.network()),
                         .placement = command.partition.placement});
}

// Fills cell and optimizer. Answers whether the averages came with them.
absl::StatusOr<bool> LoadCheckpoint(const LoadingParts& parts, LoadedCells* loaded) {
  const LoadCommand& command = loaded->command;
  const bool from_memory = parts.snapshot != nullptr;
  CheckpointFiles from{.files = from_memory ? parts.snapshot : parts.file_system,
                       .folder = command.checkpoint_folder,  // a snapshot's is ""
                       .local = from_memory ? nullptr : parts.local_shards};
  ASSIGN_OR_RETURN(bool averages, HoldsAverages(*from.files, from.folder));
  averages = averages && !command.fresh_optimizer;
  RETURN_IF_ERROR(LoadTensors(&from, command.fence.step,
                              command.fresh_optimizer
                                  ? ModelTensors(loaded->all_cells())
                                  : TrainingTensors(loaded->all_cells(), *loaded->optimizer,
                                                    averages),
                              *parts.backend));
  for (Cell* const cell : loaded->all_cells()) {
    RETURN_IF_ERROR(LoadCopies(&from, command.fence.step, *cell, *parts.backend));
  }
  if (from.local != nullptr) {
    loaded->result.local_note =
        absl::StrCat("read ", from.local_bytes, " of ", from.bytes,
                     " bytes of the checkpoint from local copies, the others from the store");
  }
  return averages;
}

// The cells with their parameters and states, not yet those of a checkpoint.
absl::Status CreateCells(const LoadingParts& parts, LoadedCells* loaded) {
  const LoadCommand& command = loaded->command;
  const int layers = static_cast<int>(loaded->network().layers.size());
  ASSIGN_OR_RETURN(const std::unique_ptr<WeightFile> weights, OpenWeights(parts, *loaded));
  Cell::Given given;
  if (weights != nullptr) {
    given = [&weights](const std::string& name, std::span<float> values) {
      return weights->Read(name, values);
    };
  }
  const bool overwritten = command.resumes() && weights == nullptr;
  for (LoadedCells::One& own : loaded->cells) {
    ASSIGN_OR_RETURN(
        own.cell,
        Cell::Create(loaded->network(), command.partition.first(own.id.value),
                     command.partition.last(own.id.value, layers),
                     overwritten ? std::nullopt : std::optional<uint64_t>(command.spec.seed),
                     static_cast<int>(command.spec.training.micro_batches), *parts.backend, given));
  }
  if (weights == nullptr) return absl::OkStatus();
  ASSIGN_OR_RETURN(loaded->result.weights, weights->Finish());
  loaded->result.weights_notes = weights->notes();
  return absl::OkStatus();
}

absl::Status BuildCells(const LoadingParts& parts, const Programs& programs, LoadedCells* loaded) {
  const LoadCommand& command = loaded->command;
  parts.backend->SetPrecision(command.spec.precision);
  const HostForecast forecast = ForecastOf(*loaded, programs, *parts.backend);
  parts.backend->UseSpareMemory(forecast.spare);
  loaded->forecast_bytes = forecast.memory.total();
  RETURN_IF_ERROR(CreateCells(parts, loaded));
  std::vector<Parameter*> trained;
  std::vector<LayerState*> states;
  for (Cell* const cell : loaded->all_cells()) {
    for (Parameter* const one : cell->trained()) trained.push_back(one);
    for (LayerState* const one : cell->states()) states.push_back(one);
  }
  const TrainingSpec& training = command.spec.training;
  ASSIGN_OR_RETURN(loaded->optimizer,
                   MakeOptimizer(training.optimizer, std::move(trained), *parts.backend,
                                 training.average, states));
  for (Cell* const cell : loaded->all_cells()) cell->ZeroGradients();
  bool averages = false;  // are in the checkpoint
  if (command.resumes()) {
    ASSIGN_OR_RETURN(averages, LoadCheckpoint(parts, loaded));
    for (Cell* const cell : loaded->all_cells()) cell->RefreshCompute();
  }
  if (!averages) loaded->optimizer->BeginAverages();
  return parts.backend->Synchronize();
}

std::unique_ptr<StageExecutor> MakeExecutor(const LoadingParts& parts, const LoadedCells& loaded) {
  const Partition& partition = loaded.command.partition;
  std::vector<StageExecutor::CellParts> cells;
  for (const LoadedCells::One& own : loaded.cells) {
    const int id = own.id.value;
    StageExecutor::CellParts& cell = cells.emplace_back();
    cell = {.id = own.id,
            .cell = own.cell.get(),
            .upstream = own.upstream.get(),
            .downstream = own.downstream.get()};
    if (id > 0) cell.above = StageId(StageOf(partition.placement, id - 1));
    if (id + 1 < partition.cells()) cell.below = StageId(StageOf(partition.placement, id + 1));
  }
  return std::make_unique<StageExecutor>(
      StageExecutor::Parts{.stage = loaded.command.stage,
                           .seed = loaded.command.spec.seed,
                           .cells = std::move(cells),
                           .cells_of_pipeline = partition.cells(),
                           .backend = parts.backend,
                           .data = loaded.data.get(),
                           .network = &loaded.network(),
                           .phases = parts.phases,
                           .clock = parts.clock});
}

StageMemory ToStageMemory(const std::array<int64_t, kMemoryKinds>& bytes) {
  const auto of = [&bytes](MemoryKind kind) { return bytes[static_cast<int>(kind)]; };
  return {.parameters = of(MemoryKind::kParameters),
          .gradients = of(MemoryKind::kGradients),
          .optimizer = of(MemoryKind::kOptimizer),
          .activations = of(MemoryKind::kActivations) + of(MemoryKind::kWorkspace)};
}

}  // namespace

LoadedCells::~LoadedCells() {
  // The executors borrow the links, which must not call back into cells that are gone.
  writing.reset();
  executor.reset();
  for (Link* const link : links()) link->SetReadyCallback(nullptr);
  CloseLinks(absl::CancelledError("the cell was released"));
}

std::vector<Cell*> LoadedCells::all_cells() const {
  std::vector<Cell*> all;
  for (const One& own : cells) all.push_back(own.cell.get());
  return all;
}

std::vector<Link*> LoadedCells::links() const {
  std::vector<Link*> all;
  for (const One& own : cells) {
    for (Link* const link : {own.upstream.get(), own.downstream.get()}) {
      if (link != nullptr) all.push_back(link);
    }
  }
  return all;
}

void LoadedCells::CloseLinks(const absl::Status& reason) {
  for (Link* const link : links()) link->Close(reason);
}

std::string LoadedCells::WaitingFor() const {
  return writing != nullptr ? writing->WaitingFor() : executor->WaitingFor();
}

MicroBatchId LoadedCells::current_micro_batch() const {
  return writing != nullptr ? writing->current_micro_batch() : executor->current_micro_batch();
}

uint64_t LoadedCells::stale_messages() const {
  return executor->stale_messages() + stale_written +
         (writing != nullptr ? writing->stale_messages() : 0);
}

void LoadedCells::EndWriting() {
  if (writing == nullptr) return;
  stale_written += writing->stale_messages();
  writing.reset();
}

std::string LoadedCells::Unconnected() const {
  std::string text;
  const CellPlacement& placement = command.partition.placement;
  for (size_t i = 0; i < cells.size(); ++i) {
    const One& own = cells[i];
    if (own.upstream != nullptr && !own.upstream->statistics().connected) {
      absl::StrAppend(&text, "; stage ", StageOf(placement, own.id.value - 1),
                      " has not dialled this one");
    }
    if (own.downstream != nullptr && !own.downstream->statistics().connected) {
      absl::StrAppend(&text, "; stage ", StageOf(placement, own.id.value + 1), " at ",
                      command.neighbours[i].downstream_address,
                      " has not answered the link; can this machine reach it?");
    }
  }
  return text;
}

absl::StatusOr<bool> LoadedCells::IsNew(const ApplyDecision& decision) const {
  if (decision.step == next_step && undecided == decision.step) return true;
  if (decision.step + 1 == next_step && last_decision == decision) return false;
  return absl::FailedPreconditionError(
      absl::StrCat("decision about step ", decision.step, ": stage ", command.stage.value, " has ",
                   undecided.has_value()
                       ? absl::StrCat("gradients of step ", *undecided)
                       : absl::StrCat("no gradients, and has decided all before step ", next_step),
                   decision.step + 1 == next_step ? " otherwise" : ""));
}

absl::Status LoadedCells::Apply(const ApplyDecision& decision, Backend& backend) {
  ASSIGN_OR_RETURN(const bool is_new, IsNew(decision));
  if (!is_new) return absl::OkStatus();
  NoteInstruction("apply");
  if (decision.apply) {
    // Before the update, whose averages follow the states too.
    for (Cell* const cell : all_cells()) RETURN_IF_ERROR(cell->CommitStates());
    optimizer->Apply(decision.optimizer_steps, decision.learning_rate, decision.gradient_scale);
    copied = Weights::kStale;
  }
  for (Cell* const cell : all_cells()) cell->ZeroGradients();
  RETURN_IF_ERROR(AnnotateAt(backend.Synchronize(),
                             absl::StrCat("stage ", command.stage.value, ", job ",
                                          command.fence.job, ", apply of step ", decision.step)));
  undecided.reset();
  last_decision = decision;
  next_step = decision.step + 1;
  return absl::OkStatus();
}

void LoadedCells::Hold(Weights weights) {
  if (held == weights) return;
  optimizer->SwapAverages();
  for (Cell* const cell : all_cells()) cell->RefreshCompute();
  held = weights;
}

double LoadedCells::loss_scale() const {
  return 1.0 / (static_cast<double>(command.spec.training.batch_size) *
                static_cast<double>(network().targets()));
}

absl::StatusOr<std::unique_ptr<LoadedCells>> LoadCells(LoadCommand command,
                                                       const LoadingParts& parts) {
  RETURN_IF_ERROR(ValidateJob(command.spec, *command.network));
  auto loaded = std::make_unique<LoadedCells>();
  loaded->command = std::move(command);
  const LoadCommand& load = loaded->command;
  const Network& network = loaded->network();
  const int layers = static_cast<int>(network.layers.size());
  RETURN_IF_ERROR(CheckPlacement(load, layers));
  // The job may say `stages: auto`, and then its own validation knows no K.
  RETURN_IF_ERROR(CheckPlanSize(load.spec, load.partition.stages()));
  const int capacity = parts.link.capacity_messages;
  Programs programs;
  ASSIGN_OR_RETURN(programs.training,
                   MakePrograms(load, network, capacity, load.spec.write.has_value()));
  ASSIGN_OR_RETURN(programs.evaluation, MakePrograms(load, network, capacity, true));
  programs.decoding = DecodingSizesOf(load.spec, network);
  const size_t own = static_cast<size_t>(load.stage.value);
  loaded->training = programs.training[own];
  loaded->first_evaluation = programs.evaluation[own];
  loaded->evaluation = WithoutTiedValues(loaded->first_evaluation);
  const int stage = load.stage.value;
  for (const int cell : load.partition.CellsOfStage(stage)) {
    loaded->cells.push_back({.id = CellId(cell)});
  }
  // Before the slow part, so that the neighbour finds somebody to connect to.
  OpenLinks(parts, programs, loaded.get());
  const std::vector<std::string> reads =
      ReadInputs(network, load.partition.LayersOf(stage, layers));
  if (!reads.empty()) {
    RETURN_IF_ERROR(
        OpenData(load.spec, network, reads, load.expected_data, *parts.data_roots, loaded.get()));
  }
  RETURN_IF_ERROR(BuildCells(parts, programs, loaded.get()));
  loaded->executor = MakeExecutor(parts, *loaded);
  loaded->next_step = load.fence.step;
  ASSIGN_OR_RETURN(const CallWays ways, AskCallWays(network, load.spec.training, *parts.backend));
  loaded->result.fingerprint = absl::StrCat(parts.backend->fingerprint(), ways.fingerprint);
  loaded->result.attention = ways.note;
  loaded->result.memory = CurrentMemory(parts.backend->allocator().Use());
  return loaded;
}

StageMemory CurrentMemory(const MemoryUse& use) { return ToStageMemory(use.current); }
StageMemory PeakMemory(const MemoryUse& use) { return ToStageMemory(use.peak); }

}  // namespace stagecoach
