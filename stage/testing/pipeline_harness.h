// PipelineHarness: K stages in one thread, for tests: in-process links, executors driven in an
// order drawn from a seed, and a coordinator's part (norm by layer, clipping, one decision) in ten
// lines.
// Ownership: owns everything.
// Threads:   one.
#ifndef STAGECOACH_STAGE_TESTING_PIPELINE_HARNESS_H_
#define STAGECOACH_STAGE_TESTING_PIPELINE_HARNESS_H_

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/errors/status.h"
#include "base/numbers/random.h"
#include "base/threads/clock.h"
#include "network/network_kinds.h"
#include "network/network_spec.h"
#include "network/zoo/gpt.h"
#include "plan/optimizers/adamw.h"
#include "plan/plan.h"
#include "plan/schedules/schedule.h"
#include "plan/schedules/schedule_kinds.h"
#include "stage/cell/optimizer.h"
#include "stage/data/token_source.h"
#include "stage/executor/executor.h"
#include "stage/link/testing/in_process_link.h"
#include "stage/runtime/shard_tensors.h"
#include "stage/testing/copying_link.h"
#include "stage/testing/made_up_images.h"
#include "stage/testing/made_up_pairs.h"

namespace stagecoach {

// Tokens drawn from a seed, the same sequences for every M. A test sets the size of the evaluation
// split.
class MadeUpSource final : public TokenSource {
 public:
  struct Sizes {
    int64_t batch_size = 0, micro_batches = 0, context = 0, vocabulary = 0;
    int64_t evaluation_sequences = 0;
    int64_t draws_below = 0;  // upper bound of ids; 0: the vocabulary
  };
  explicit MadeUpSource(const Sizes& sizes) : sizes_(sizes) {}

  const DatasetManifest& manifest() const override { return manifest_; }
  absl::StatusOr<TokenBatch> TrainTokens(uint64_t step, MicroBatchId micro_batch) const override {
    return Draw(FirstOf(micro_batch), SizeOf(micro_batch), 77, static_cast<uint32_t>(step));
  }
  absl::StatusOr<TokenBatch> EvaluationTokens(uint64_t batch,
                                              MicroBatchId micro_batch) const override {
    const int64_t first = static_cast<int64_t>(batch) * sizes_.batch_size + FirstOf(micro_batch);
    const int64_t left = std::max<int64_t>(sizes_.evaluation_sequences - first, 0);
    return Draw(first, std::min(SizeOf(micro_batch), left), 78, 0);
  }
  int64_t evaluation_batches() const override {
    return (sizes_.evaluation_sequences + sizes_.batch_size - 1) / sizes_.batch_size;
  }

 private:
  int64_t SizeOf(MicroBatchId id) const {
    return MicroBatchSize(sizes_.batch_size, sizes_.micro_batches, id.value);
  }
  int64_t FirstOf(MicroBatchId id) const {
    int64_t first = 0;
    for (int i = 0; i < id.value; ++i) first += SizeOf(MicroBatchId(i));
    return first;
  }
  TokenBatch Draw(int64_t first, int64_t sequences, uint64_t seed, uint32_t step) const {
    TokenBatch batch;
    batch.sequences = sequences;
    for (int64_t i = 0; i < sequences * sizes_.context; ++i) {
      const RandomStream stream = {
          .seed = seed,
          .step = step,
          .micro_batch = static_cast<uint32_t>(first + i / sizes_.context)};
      const auto token = [&](uint64_t j) {
        const int64_t below = sizes_.draws_below > 0 ? sizes_.draws_below : sizes_.vocabulary;
        return static_cast<int32_t>(RandomBits(stream, j) % below);
      };
      const auto at = static_cast<uint64_t>(i % sizes_.context);
      batch.inputs.push_back(token(2 * at));
      batch.targets.push_back(token(2 * at + 1));
      // Documents end with one in four.
      const bool begins = at > 0 && batch.inputs[static_cast<size_t>(i - 1)] % 4 == 0;
      const int32_t before = at > 0 ? batch.document_starts.back() : 0;
      batch.document_starts.push_back(begins ? static_cast<int32_t>(at) : before);
    }
    return batch;
  }

  const Sizes sizes_;
  DatasetManifest manifest_;
};

struct HarnessOptions {
  int stages = 1;
  GptSpec gpt = {.layers = 2, .width = 4, .heads = 2, .context = 3, .vocabulary = 7};
  int64_t batch_size = 4, micro_batches = 2;
  std::string schedule = "gpipe";
  int cells_per_stage = 0;  // 0: as many as the schedule usually has
  Rematerialization rematerialization = Rematerialization::kAlways;
  double dropout = 0.0;
  double clip_norm = 0.0;
  int link_capacity = kLinkCapacity;  // and kLinkCapacity at least if stages have several cells
  bool own_memory = false;            // stages share no memory, as separate processes: CopyingLink
  int64_t evaluation_sequences = 0;
  int64_t draws_below = 0;    // MadeUpSource's
  bool lengths_vary = false;  // MadeUpPairs'
  Precision precision = Precision::kFloat32;
  uint64_t order_seed = 0;  // of the order in which executors advance
  int patience = 0;         // rounds without an advance, for devices that run only when queried
  std::function<std::unique_ptr<Backend>()> make_backend = [] {
    return MakeReferenceBackend(BackendOptions{});
  };
  std::optional<NetworkSpec> spec;  // instead of `gpt`, which has `dropout`
  std::optional<Network> network;   // instead of both; of this precision
  OptimizerSpec optimizer = AdamWSpec{};
  AverageSpec average;
  uint64_t seed = 5;                                           // of initial weights and draws
  std::shared_ptr<const BatchSource> source;                   // instead of a MadeUpSource
  std::function<void(MicroBatchId, const Tensor&)> on_output;  // StageExecutor::Parts
};

// The schedules whose cells so many layers are enough for.
inline std::vector<std::string> SchedulesFor(size_t layers, int stages) {
  std::vector<std::string> names = ScheduleNames();
  std::erase_if(names, [&](const std::string& name) {
    return CellsPerStageOf(name, 0) * stages > static_cast<int64_t>(layers);
  });
  return names;
}

// In the next pass stages stop after these numbers of instructions, until none can advance. Then
// `stage` does one more, and all go on.
struct HarnessStop {
  int stage = 0;
  std::map<int, size_t> positions;  // by stage; other stages go as far as they can
};

// Results that must have the same bits.
struct HarnessResult {
  std::vector<double> losses;                // sums over a mini-batch
  std::vector<double> squared_norms;         // of all layers, by step
  std::map<std::string, std::string> state;  // parameters and slots by name
  friend bool operator==(const HarnessResult&, const HarnessResult&) = default;
};

class PipelineHarness {
 public:
  static constexpr int64_t kContext = 3;  // of the default network

  explicit PipelineHarness(const HarnessOptions& options, Clock* clock = SystemClock::Get())
      : options_(options), order_{.seed = options.order_seed, .step = 1} {
    GptSpec gpt = options.gpt;
    gpt.dropout = options.dropout;
    const NetworkSpec spec = options.spec.value_or(gpt);
    auto network = options.network.has_value() ? absl::StatusOr<Network>(*options.network)
                                               : ExpandNetwork(spec, options.precision);
    CHECK_OK(network.status());
    network_ = *std::move(network);
    source_ = MakeSource();
    const CellPlacement placement =
        PlacementOf(options.schedule, options.stages, options.cells_per_stage);
    const int cells = placement.empty() ? options.stages : static_cast<int>(placement.size());
    auto partition = UniformPartition(static_cast<int>(network_.layers.size()), cells);
    CHECK_OK(partition.status());
    partition_ = *std::move(partition);
    partition_.placement = placement;
    training_ = Programs(false);
    evaluation_ = Programs(true);
    stages_.resize(options.stages);
    MakeLinks();
    for (int k = 0; k < options.stages; ++k) Build(k, clock);
  }

  // Trains the next step on all stages and applies it.
  absl::Status TrainStep() {
    ASSIGN_OR_RETURN(std::vector<StepReport> reports, RunPass(true, 0));
    result_.losses.push_back(OfLastCell(reports).loss_sum);
    const double squared_norm = SquaredNorm(reports);
    result_.squared_norms.push_back(squared_norm);
    const double norm = std::sqrt(squared_norm);
    const bool clips = options_.clip_norm > 0 && norm > options_.clip_norm;
    for (Stage& stage : stages_) {
      for (OneCell& own : stage.cells) RETURN_IF_ERROR(own.cell->CommitStates());
      stage.optimizer->Apply(step_, 0.05, clips ? options_.clip_norm / norm : 1.0);
      for (OneCell& own : stage.cells) own.cell->ZeroGradients();
    }
    ++step_;
    return absl::OkStatus();
  }

  absl::StatusOr<StepReport> Evaluate(uint64_t batch) {
    ASSIGN_OR_RETURN(std::vector<StepReport> reports, RunPass(false, batch));
    return OfLastCell(reports);
  }

  absl::StatusOr<HarnessResult> Train(int steps) {
    for (int i = 0; i < steps; ++i) RETURN_IF_ERROR(TrainStep());
    return Result();
  }

  HarnessResult Result() {
    HarnessResult result = result_;
    for (Stage& stage : stages_) {
      for (const NamedTensor& named : TrainingTensors(stage.all_cells(), *stage.optimizer)) {
        std::string bytes(static_cast<size_t>(named.tensor.bytes()), '\0');
        stage.backend->CopyToHost(named.tensor, std::as_writable_bytes(std::span(bytes)));
        result.state[named.name] = std::move(bytes);
      }
    }
    return result;
  }

  StageExecutor& executor(int k) { return *stages_[k].executor; }
  PhaseClock& phases(int k) { return *stages_[k].phases; }
  Backend& backend(int k) { return *stages_[k].backend; }
  Cell& cell(int k) { return *stages_[k].cells.front().cell; }  // the first one of the stage
  std::vector<Cell*> cells(int k) const { return stages_[k].all_cells(); }
  Optimizer& optimizer(int k) { return *stages_[k].optimizer; }
  Link* upstream(int k) { return stages_[k].cells.front().upstream.get(); }
  Link* downstream(int k) { return stages_[k].cells.front().downstream.get(); }
  // The report of the stage with the loss.
  const StepReport& OfLastCell(const std::vector<StepReport>& reports) const {
    return reports[static_cast<size_t>(StageOf(partition_.placement, partition_.cells() - 1))];
  }
  int stages() const { return options_.stages; }
  const std::vector<StageProgram>& programs(bool training) const {
    return training ? training_ : evaluation_;
  }
  const Partition& partition() const { return partition_; }
  int link_capacity() const {
    return partition_.placement.empty() ? options_.link_capacity
                                        : std::max(options_.link_capacity, kLinkCapacity);
  }
  const Network& network() const { return network_; }
  void set_stop(const HarnessStop& stop) { stop_ = stop; }
  void set_step(uint64_t step) { step_ = step; }

  StepWork Work(int k, bool training, uint64_t evaluation_batch = 0) const {
    return {.fence = {.job = "a", .term = 1, .generation = 1, .step = step_},
            .training = training,
            .evaluation_batch = evaluation_batch,
            .program = &programs(training)[k],
            .loss_scale = 1.0 / static_cast<double>(options_.batch_size * network_.targets())};
  }

  // One pass over the pipeline; INTERNAL if no stage can advance any more.
  absl::StatusOr<std::vector<StepReport>> RunPass(bool training, uint64_t evaluation_batch) {
    std::vector<int> running;
    std::vector<uint64_t> begun;
    for (int k = 0; k < stages(); ++k) {
      executor(k).BeginStep(Work(k, training, evaluation_batch));
      running.push_back(k);
      begun.push_back(executor(k).instructions_done());
    }
    std::set<int> blocked;  // since a stage advanced
    int rounds = 0;         // without an advance
    while (!running.empty()) {
      const uint32_t draw = RandomBits(order_, draws_++);
      const size_t at = draw % running.size();
      const int k = running[at];
      const uint64_t before = executor(k).instructions_done();
      const int most = static_cast<int>(
          std::min<uint64_t>(1 + (draw >> 16) % 4, LeftToStop(k, before - begun[k])));
      Progress progress = Progress::kBlocked;
      if (most > 0) {
        ASSIGN_OR_RETURN(progress, executor(k).Advance(most));
      }
      if (executor(k).instructions_done() != before || progress == Progress::kFinished) {
        blocked.clear();
        rounds = 0;
      }
      if (progress == Progress::kBlocked) blocked.insert(k);
      if (progress == Progress::kFinished) running.erase(running.begin() + at);
      if (!running.empty() && blocked.size() == running.size()) {
        blocked.clear();
        if (stop_.has_value()) {
          const int stopped = std::exchange(stop_, std::nullopt)->stage;
          ASSIGN_OR_RETURN(const Progress one, executor(stopped).Advance(1));
          if (one == Progress::kFinished) std::erase(running, stopped);
          continue;
        }
        if (++rounds <= options_.patience) continue;
        return absl::InternalError(absl::StrCat("deadlock: ", executor(running[0]).WaitingFor()));
      }
    }
    std::vector<StepReport> reports;
    for (int k = 0; k < stages(); ++k) reports.push_back(executor(k).TakeReport());
    return reports;
  }

 private:
  struct OneCell {
    std::unique_ptr<Link> upstream, downstream;
    std::unique_ptr<Cell> cell;
  };
  struct Stage {
    std::unique_ptr<Backend> backend;
    std::unique_ptr<PhaseClock> phases;
    std::vector<OneCell> cells;
    std::unique_ptr<Optimizer> optimizer;
    std::vector<Cell*> all_cells() const {
      std::vector<Cell*> all;
      for (const OneCell& own : cells) all.push_back(own.cell.get());
      return all;
    }
    std::unique_ptr<StageExecutor> executor;
  };

  // By layer index, never by stage.
  double SquaredNorm(const std::vector<StepReport>& reports) const {
    std::map<int, double> by_layer;
    for (int k = 0; k < stages(); ++k) {
      auto next = reports[static_cast<size_t>(k)].layer_squared_norms.begin();
      const int layers = static_cast<int>(network_.layers.size());
      for (const LayerRange& cell : partition_.LayersOf(k, layers)) {
        for (int i = cell.first; i < cell.last; ++i) by_layer[i] = *next++;
      }
    }
    double sum = 0;
    for (const auto& [layer, norm] : by_layer) sum += norm;
    return sum;
  }

  OneCell& Holder(int cell) {
    const int k = StageOf(partition_.placement, cell);
    const std::vector<int> cells = partition_.CellsOfStage(k);
    const auto place = std::find(cells.begin(), cells.end(), cell) - cells.begin();
    return stages_[k].cells[static_cast<size_t>(place)];
  }
  void MakeLinks() {
    for (int k = 0; k < stages(); ++k) stages_[k].cells.resize(partition_.CellsOfStage(k).size());
    for (int cell = 0; cell + 1 < partition_.cells(); ++cell) {
      const int above = StageOf(partition_.placement, cell);
      const int below = StageOf(partition_.placement, cell + 1);
      if (above == below) continue;
      const LinkOptions link{.capacity_messages = link_capacity()};
      std::tie(Holder(cell).downstream, Holder(cell + 1).upstream) =
          options_.own_memory ? CopyingLink::MakePair(link, MemoryOf(above), MemoryOf(below))
                              : MakeInProcessLinkPair(link);
    }
  }

  // Images or pairs for a network that reads some, tokens for all others.
  std::shared_ptr<const BatchSource> MakeSource() const {
    if (options_.source != nullptr) return options_.source;
    const WireId images = network_.InputNamed("images");
    if (images.valid()) {
      return std::make_shared<MadeUpImages>(MadeUpImages::Sizes{
          options_.batch_size, options_.micro_batches, options_.evaluation_sequences,
          network_.wire(images).type.shape.elements(), network_.classes(),
          network_.objective.target_type.shape.elements()});
    }
    if (network_.InputNamed("source").valid()) {
      return std::make_shared<MadeUpPairs>(
          network_, MadeUpPairs::Sizes{options_.batch_size, options_.micro_batches,
                                       options_.evaluation_sequences, options_.lengths_vary});
    }
    return std::make_shared<MadeUpSource>(MadeUpSource::Sizes{
        options_.batch_size, options_.micro_batches, network_.targets(), network_.classes(),
        options_.evaluation_sequences, options_.draws_below});
  }

  std::vector<StageProgram> Programs(bool forward_only) const {
    const Schedule schedule =
        MakeSchedule(FitToNetwork(network_, partition_,
                                  {.kind = options_.schedule,
                                   .rematerialization = options_.rematerialization,
                                   .stages = options_.stages,
                                   .micro_batches = int(options_.micro_batches),
                                   .forward_only = forward_only}));
    CHECK_OK(ValidateSchedule(schedule, {.link_capacity = link_capacity()}));
    return schedule.programs;
  }

  // The instructions that stage k may do before it stops.
  uint64_t LeftToStop(int k, uint64_t done) const {
    if (!stop_.has_value()) return std::numeric_limits<uint64_t>::max();
    const auto found = stop_->positions.find(k);
    if (found == stop_->positions.end()) return std::numeric_limits<uint64_t>::max();
    return found->second - std::min<uint64_t>(done, found->second);
  }

  CopyingLink::Memory MemoryOf(int stage) {
    return [this, stage]() -> Allocator& { return stages_[stage].backend->link_allocator(); };
  }

  void Build(int k, Clock* clock) {
    Stage& stage = stages_[k];
    stage.backend = options_.make_backend();
    stage.backend->SetPrecision(options_.precision);
    stage.phases = std::make_unique<PhaseClock>(clock);
    const int layers = static_cast<int>(network_.layers.size());
    const std::vector<int> numbers = partition_.CellsOfStage(k);
    std::vector<StageExecutor::CellParts> cells;
    std::vector<Parameter*> trained;
    std::vector<LayerState*> states;
    for (size_t i = 0; i < numbers.size(); ++i) {
      const int number = numbers[i];
      OneCell& own = stage.cells[i];
      auto cell = Cell::Create(network_, partition_.first(number), partition_.last(number, layers),
                               options_.seed, int(options_.micro_batches), *stage.backend);
      CHECK_OK(cell.status());
      own.cell = *std::move(cell);
      own.cell->ZeroGradients();
      for (Parameter* const one : own.cell->trained()) trained.push_back(one);
      for (LayerState* const one : own.cell->states()) states.push_back(one);
      cells.push_back({.id = CellId(number),
                       .cell = own.cell.get(),
                       .upstream = own.upstream.get(),
                       .downstream = own.downstream.get()});
      if (number > 0) cells.back().above = StageId(StageOf(partition_.placement, number - 1));
      if (number + 1 < partition_.cells()) {
        cells.back().below = StageId(StageOf(partition_.placement, number + 1));
      }
    }
    auto optimizer =
        MakeOptimizer(options_.optimizer, trained, *stage.backend, options_.average, states);
    CHECK_OK(optimizer.status());
    stage.optimizer = *std::move(optimizer);
    stage.optimizer->BeginAverages();
    stage.executor = std::make_unique<StageExecutor>(
        StageExecutor::Parts{.stage = StageId(k),
                             .seed = options_.seed,
                             .cells = std::move(cells),
                             .cells_of_pipeline = partition_.cells(),
                             .backend = stage.backend.get(),
                             .data = source_.get(),
                             .network = &network_,
                             .phases = stage.phases.get(),
                             .clock = clock,
                             .on_output = options_.on_output});
  }

  const HarnessOptions options_;
  const RandomStream order_;
  uint64_t draws_ = 0;
  Network network_;
  std::shared_ptr<const BatchSource> source_;
  std::vector<StageProgram> training_, evaluation_;
  Partition partition_;
  std::optional<HarnessStop> stop_;
  std::vector<Stage> stages_;
  uint64_t step_ = 0;
  HarnessResult result_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_TESTING_PIPELINE_HARNESS_H_
