#include "stage/runtime/loaded_cell.h"

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
#include "stage/data/open_source.h"
#include "stage/layers/call_ways.h"
#include "stage/runtime/shard_tensors.h"
#include "stage/weights/weight_file.h"

namespace stagecoach {
namespace {

absl::Status CheckPlacement(const LoadCommand& command, int layers) {
  const Partition& partition = command.partition;
  bool ascending = partition.stages() > 0 && partition.first_layers.front() == 0 &&
                   partition.first_layers.back() < layers;
  for (int k = 1; k < partition.stages(); ++k) {
    ascending = ascending && partition.first(k - 1) < partition.first(k);
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
  const bool last = command.stage.value + 1 == partition.stages();
  if (!last && command.downstream_address.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("downstream_address: empty, stage ",
                                                   command.stage.value, " is not the last one"));
  }
  return absl::OkStatus();
}

// Of all stages.
absl::StatusOr<std::vector<StageProgram>> MakePrograms(const LoadCommand& command,
                                                       const Network& network, int link_capacity,
                                                       bool forward_only) {
  const JobSpec& spec = command.spec;
  ScheduleOptions options = {.kind = spec.pipeline.schedule,
                             .rematerialization = spec.pipeline.rematerialization,
                             .stages = command.partition.stages(),
                             .micro_batches = static_cast<int>(spec.training.micro_batches),
                             .forward_only = forward_only};
  Schedule schedule = MakeSchedule(FitToNetwork(network, command.partition, std::move(options)));
  PipelineLimits limits;
  limits.link_capacity = link_capacity;
  RETURN_IF_ERROR(Annotate(ValidateSchedule(schedule, limits), "schedule"));
  return std::move(schedule.programs);
}

// The inputs that the executor asks for.
std::vector<std::string> ReadInputs(const Network& network, const CellWires& wires, bool last) {
  std::vector<std::string> names;
  for (const WireId id : wires.loaded) names.push_back(network.input(id).name);
  if (!last) return names;
  for (const WireId id : network.objective.inputs()) names.push_back(network.input(id).name);
  return names;
}

absl::Status OpenData(const JobSpec& spec, const Network& network,
                      const std::vector<std::string>& reads, const DatasetManifest& expected,
                      const DataRoots& roots, LoadedCell* loaded) {
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

void OpenLinks(const LoadingParts& parts, const Programs& programs, LoadedCell* loaded) {
  const LoadCommand& command = loaded->command;
  const int stage = command.stage.value;
  const std::vector<int>& firsts = command.partition.first_layers;
  const Network& network = loaded->network();
  const bool is_last = stage + 1 == command.partition.stages();
  const int end =
      is_last ? static_cast<int>(network.layers.size()) : firsts[static_cast<size_t>(stage) + 1];
  ArrivingMessages most = MessagesOfCell(network, firsts[static_cast<size_t>(stage)], end,
                                         MicroBatchSize(ComputedSamples(command.spec, network),
                                                        command.spec.training.micro_batches, 0));
  if (programs.decoding.has_value()) {
    most.from_behind = std::max(most.from_behind, programs.decoding->rows_message);
  }
  BoundaryId boundary{command.fence.job, command.fence.term, command.fence.generation};
  Allocator& allocator = parts.backend->link_allocator();
  if (stage > 0) {
    boundary.upstream = StageId(stage - 1);
    loaded->upstream =
        parts.connector->Accept(boundary, command.upstream_name, allocator, most.from_before);
    loaded->upstream->SetReadyCallback(parts.link_ready);
  }
  if (!is_last) {
    boundary.upstream = StageId(stage);
    loaded->downstream =
        parts.connector->Dial(command.downstream_address, boundary, allocator, most.from_behind);
    loaded->downstream->SetReadyCallback(parts.link_ready);
  }
}

// The weights that parameters and states begin with; null: none of a file's. A base of adapters
// begins each load, and a checkpoint has the rest.
absl::StatusOr<std::unique_ptr<WeightFile>> OpenWeights(const LoadingParts& parts,
                                                        const LoadedCell& loaded) {
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

HostForecast ForecastOf(const LoadedCell& loaded, const Programs& programs, Backend& backend) {
  const LoadCommand& command = loaded.command;
  const int stage = command.stage.value, layers = static_cast<int>(loaded.network().layers.size());
  const bool writes = command.spec.write.has_value();
  std::span<const StageProgram> training, evaluation;
  if (!writes) training = programs.training;
  if (writes || command.spec.evaluation.given()) evaluation = programs.evaluation;
  return ForecastOnHost(command.spec, loaded.network(), training, evaluation,
                        {.stage = stage,
                         .first_layer = command.partition.first(stage),
                         .last_layer = command.partition.last(stage, layers),
                         .limit = backend.allocator().Use().limit,
                         .host = backend.Host(),
                         .decoding = programs.decoding.has_value() ? &*programs.decoding : nullptr,
                         .batch_size = ComputedSamples(command.spec, loaded.network())});
}

// Fills cell and optimizer. Answers whether the averages came with them.
absl::StatusOr<bool> LoadCheckpoint(const LoadingParts& parts, LoadedCell* loaded) {
  const LoadCommand& command = loaded->command;
  const bool from_memory = parts.snapshot != nullptr;
  CheckpointFiles from{.files = from_memory ? parts.snapshot : parts.file_system,
                       .folder = command.checkpoint_folder,  // a snapshot's is ""
                       .local = from_memory ? nullptr : parts.local_shards};
  ASSIGN_OR_RETURN(bool averages, HoldsAverages(*from.files, from.folder));
  averages = averages && !command.fresh_optimizer;
  RETURN_IF_ERROR(LoadTensors(&from, command.fence.step,
                              command.fresh_optimizer
                                  ? ModelTensors(*loaded->cell)
                                  : TrainingTensors(*loaded->cell, *loaded->optimizer, averages),
                              *parts.backend));
  RETURN_IF_ERROR(LoadCopies(&from, command.fence.step, *loaded->cell, *parts.backend));
  if (from.local != nullptr) {
    loaded->result.local_note =
        absl::StrCat("read ", from.local_bytes, " of ", from.bytes,
                     " bytes of the checkpoint from local copies, the others from the store");
  }
  return averages;
}

absl::Status BuildCell(const LoadingParts& parts, const Programs& programs, LoadedCell* loaded) {
  const LoadCommand& command = loaded->command;
  const int stage = command.stage.value;
  const int layers = static_cast<int>(loaded->network().layers.size());
  const bool resumes = command.resumes();
  ASSIGN_OR_RETURN(const std::unique_ptr<WeightFile> weights, OpenWeights(parts, *loaded));
  Cell::Given given;
  if (weights != nullptr) {
    given = [&weights](const std::string& name, std::span<float> values) {
      return weights->Read(name, values);
    };
  }
  parts.backend->SetPrecision(command.spec.precision);
  const HostForecast forecast = ForecastOf(*loaded, programs, *parts.backend);
  parts.backend->UseSpareMemory(forecast.spare);
  loaded->forecast_bytes = forecast.memory.total();
  ASSIGN_OR_RETURN(
      loaded->cell,
      Cell::Create(
          loaded->network(), command.partition.first(stage), command.partition.last(stage, layers),
          resumes && weights == nullptr ? std::nullopt : std::optional<uint64_t>(command.spec.seed),
          static_cast<int>(command.spec.training.micro_batches), *parts.backend, given));
  if (weights != nullptr) {
    ASSIGN_OR_RETURN(loaded->result.weights, weights->Finish());
    loaded->result.weights_notes = weights->notes();
  }
  const TrainingSpec& training = command.spec.training;
  ASSIGN_OR_RETURN(loaded->optimizer,
                   MakeOptimizer(training.optimizer, loaded->cell->trained(), *parts.backend,
                                 training.average, loaded->cell->states()));
  loaded->cell->ZeroGradients();
  bool averages = false;  // are in the checkpoint
  if (resumes) {
    ASSIGN_OR_RETURN(averages, LoadCheckpoint(parts, loaded));
    loaded->cell->RefreshCompute();
  }
  if (!averages) loaded->optimizer->BeginAverages();
  return parts.backend->Synchronize();
}

std::unique_ptr<StageExecutor> MakeExecutor(const LoadingParts& parts, const LoadedCell& loaded) {
  return std::make_unique<StageExecutor>(
      StageExecutor::Parts{.stage = loaded.command.stage,
                           .stages = loaded.command.partition.stages(),
                           .seed = loaded.command.spec.seed,
                           .cell = loaded.cell.get(),
                           .backend = parts.backend,
                           .upstream = loaded.upstream.get(),
                           .downstream = loaded.downstream.get(),
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

LoadedCell::~LoadedCell() {
  // The executors borrow the links, which must not call back into a cell that is gone.
  writing.reset();
  executor.reset();
  for (Link* link : {upstream.get(), downstream.get()}) {
    if (link != nullptr) link->SetReadyCallback(nullptr);
  }
  CloseLinks(absl::CancelledError("the cell was released"));
}

void LoadedCell::CloseLinks(const absl::Status& reason) {
  for (Link* link : {upstream.get(), downstream.get()}) {
    if (link != nullptr) link->Close(reason);
  }
}

std::string LoadedCell::WaitingFor() const {
  return writing != nullptr ? writing->WaitingFor() : executor->WaitingFor();
}

MicroBatchId LoadedCell::current_micro_batch() const {
  return writing != nullptr ? writing->current_micro_batch() : executor->current_micro_batch();
}

uint64_t LoadedCell::stale_messages() const {
  return executor->stale_messages() + stale_written +
         (writing != nullptr ? writing->stale_messages() : 0);
}

void LoadedCell::EndWriting() {
  if (writing == nullptr) return;
  stale_written += writing->stale_messages();
  writing.reset();
}

std::string LoadedCell::Unconnected() const {
  std::string text;
  if (upstream != nullptr && !upstream->statistics().connected) {
    absl::StrAppend(&text, "; stage ", command.stage.value - 1, " has not dialled this one");
  }
  if (downstream != nullptr && !downstream->statistics().connected) {
    absl::StrAppend(&text, "; stage ", command.stage.value + 1, " at ", command.downstream_address,
                    " has not answered the link; can this machine reach it?");
  }
  return text;
}

absl::StatusOr<bool> LoadedCell::IsNew(const ApplyDecision& decision) const {
  if (decision.step == next_step && undecided == decision.step) return true;
  if (decision.step + 1 == next_step && last_decision == decision) return false;
  return absl::FailedPreconditionError(
      absl::StrCat("decision about step ", decision.step, ": stage ", command.stage.value, " has ",
                   undecided.has_value()
                       ? absl::StrCat("gradients of step ", *undecided)
                       : absl::StrCat("no gradients, and has decided all before step ", next_step),
                   decision.step + 1 == next_step ? " otherwise" : ""));
}

absl::Status LoadedCell::Apply(const ApplyDecision& decision, Backend& backend) {
  ASSIGN_OR_RETURN(const bool is_new, IsNew(decision));
  if (!is_new) return absl::OkStatus();
  NoteInstruction("apply");
  if (decision.apply) {
    // Before the update, whose averages follow the states too.
    RETURN_IF_ERROR(cell->CommitStates());
    optimizer->Apply(decision.optimizer_steps, decision.learning_rate, decision.gradient_scale);
    copied = Weights::kStale;
  }
  cell->ZeroGradients();
  RETURN_IF_ERROR(AnnotateAt(backend.Synchronize(),
                             absl::StrCat("stage ", command.stage.value, ", job ",
                                          command.fence.job, ", apply of step ", decision.step)));
  undecided.reset();
  last_decision = decision;
  next_step = decision.step + 1;
  return absl::OkStatus();
}

void LoadedCell::Hold(Weights weights) {
  if (held == weights) return;
  optimizer->SwapAverages();
  cell->RefreshCompute();
  held = weights;
}

double LoadedCell::loss_scale() const {
  return 1.0 / (static_cast<double>(command.spec.training.batch_size) *
                static_cast<double>(network().targets()));
}

absl::StatusOr<std::unique_ptr<LoadedCell>> LoadCell(LoadCommand command,
                                                     const LoadingParts& parts) {
  RETURN_IF_ERROR(ValidateJob(command.spec, *command.network));
  auto loaded = std::make_unique<LoadedCell>();
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
  // Before the slow part, so that the neighbour finds somebody to connect to.
  OpenLinks(parts, programs, loaded.get());
  const int stage = load.stage.value;
  const CellWires wires =
      WiresOfCell(network, load.partition.first(stage), load.partition.last(stage, layers));
  const std::vector<std::string> reads =
      ReadInputs(network, wires, stage + 1 == load.partition.stages());
  if (!reads.empty()) {
    RETURN_IF_ERROR(
        OpenData(load.spec, network, reads, load.expected_data, *parts.data_roots, loaded.get()));
  }
  RETURN_IF_ERROR(BuildCell(parts, programs, loaded.get()));
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
