// RuntimeFleet: K stage runtimes of one process with their threads, and calls that wait for answers
// with a deadline; for tests.
// Ownership: owns runtimes, files and the data file, whose path is in its commands.
// Threads:   one test thread.
#ifndef STAGECOACH_STAGE_TESTING_RUNTIME_FLEET_H_
#define STAGECOACH_STAGE_TESTING_RUNTIME_FLEET_H_

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/errors/check.h"
#include "base/errors/status.h"
#include "base/numbers/random.h"
#include "base/testing/temporary_folder.h"
#include "base/threads/current_work.h"
#include "checkpoint/testing/fault_file_system.h"
#include "network/zoo/gpt.h"
#include "plan/data/text.h"
#include "plan/schedules/schedule_kinds.h"
#include "stage/files/any_file_testing.h"
#include "stage/link/testing/in_process_connector.h"
#include "stage/runtime/stage_runtime.h"
#include "stage/testing/manifest_file.h"

namespace stagecoach {

// The answer to a command.
template <typename T>
class AwaitedAnswer {
 public:
  std::function<void(T)> callback() {
    return [promise = promise_](T value) { promise->set_value(std::move(value)); };
  }
  bool ready() const {
    return future_.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  }
  T Get() {
    CHECK(future_.wait_for(std::chrono::seconds(60)) == std::future_status::ready)
        << "no answer within a minute";
    return future_.get();
  }

 private:
  std::shared_ptr<std::promise<T>> promise_ = std::make_shared<std::promise<T>>();
  std::future<T> future_ = promise_->get_future();
};

using LoadAnswer = AwaitedAnswer<absl::StatusOr<LoadResult>>;
using RunAnswer = AwaitedAnswer<absl::StatusOr<StepReport>>;
using ShardAnswer = AwaitedAnswer<absl::StatusOr<ShardInfo>>;
using ReleaseAnswer = AwaitedAnswer<absl::Status>;
using ProfileAnswer = AwaitedAnswer<absl::StatusOr<std::vector<LayerProfile>>>;

// Polls until a deadline: events of other threads have no callback here.
inline void Await(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!condition()) {
    CHECK(std::chrono::steady_clock::now() < deadline) << "it did not happen within a minute";
    std::this_thread::yield();
  }
}

class RuntimeFleet {
 public:
  struct Options {
    int stages = 2;
    double progress_timeout_seconds = 30;
    const Clock* clock = SystemClock::Get();
    // Makes a connector between the runtimes and the in-process connector.
    std::function<std::unique_ptr<LinkConnector>(LinkConnector*)> wrap_connector;
    int64_t memory_limit_bytes = 0;
    std::function<std::unique_ptr<Backend>()> make_backend;  // empty: the reference
    std::function<void(const absl::Status&)> on_fault;       // of any stage
    ProgressCounter* progress = nullptr;                     // of all stages
    CurrentWork* work = nullptr;                             // of the last stage
    AverageSpec average;
    bool tied_embeddings = false;
    Precision precision = Precision::kFloat32;
    SnapshotPeers* snapshot_peers = nullptr;
    ReadableFiles* weight_files = nullptr;                         // null: those of the fleet
    std::function<void(const TemporaryFolder&, JobSpec*)> change;  // of the job; empty: none
  };

  explicit RuntimeFleet(const Options& options) : connector_(LinkOptions{}) {
    std::string text;
    for (uint64_t i = 0; i < 2000; ++i) text += char(RandomBits({.seed = 9}, i) % 8);
    spec_.name = "test";
    spec_.seed = 5;
    spec_.network = GptSpec{.layers = 2,
                            .width = 4,
                            .heads = 2,
                            .context = 4,
                            .vocabulary = 8,
                            .dropout = 0.2,
                            .tied_embeddings = options.tied_embeddings};
    spec_.data = TextData{.path = folder_.Write("text", text), .bytes = true};
    spec_.training = {.steps = 10, .batch_size = 5, .micro_batches = 3};
    spec_.pipeline.stages = options.stages;
    spec_.evaluation = {.every_steps = 5, .batches = 2};
    spec_.training.average = options.average;
    spec_.precision = options.precision;
    if (options.change) options.change(folder_, &spec_);
    LinkConnector* connector = &connector_;
    if (options.wrap_connector) {
      wrapped_ = options.wrap_connector(&connector_);
      connector = wrapped_.get();
    }
    StageRuntime::Options runtime;
    runtime.snapshot_peers = options.snapshot_peers;
    runtime.progress_timeout_seconds = options.progress_timeout_seconds;
    runtime.compute_nice = 0;
    runtime.drain_idle_seconds = 86400;  // so a drain ends only when nothing is left
    runtime.on_fault = options.on_fault;
    runtime.progress = options.progress;
    runtime.data_roots = &AnyFile();
    runtime.weight_files = options.weight_files != nullptr ? options.weight_files : &file_system_;
    make_runtime_ = [this, options, runtime, connector](int k) {
      StageRuntime::Options own = runtime;
      own.trace = traces_[static_cast<size_t>(k)].get();
      if (k + 1 == options.stages) own.work = options.work;
      return std::make_unique<StageRuntime>(
          own,
          options.make_backend
              ? options.make_backend()
              : MakeReferenceBackend({.memory_limit_bytes = options.memory_limit_bytes}),
          connector, &file_system_, options.clock);
    };
    for (int k = 0; k < options.stages; ++k) {
      traces_.push_back(std::make_unique<TraceRing>());
      runtimes_.push_back(make_runtime_(k));
    }
  }
  // Restarts stage k: the contents of its memory are lost.
  void Restart(int k) {
    runtimes_[static_cast<size_t>(k)].reset();
    runtimes_[static_cast<size_t>(k)] = make_runtime_(k);
  }

  static Fence FenceOf(uint64_t generation, uint64_t step) {
    return {.job = "a", .term = 1, .generation = generation, .step = step};
  }

  std::shared_ptr<const Network> network() const {
    auto network = ExpandJob(spec_);
    CHECK_OK(network.status());
    return std::make_shared<const Network>(*std::move(network));
  }
  ProfileCommand Profile() const { return {spec_, network()}; }

  LoadCommand LoadOf(int k, uint64_t generation, uint64_t step, const std::string& checkpoint = "",
                     int stages = 0) const {
    LoadCommand command;
    command.fence = FenceOf(generation, step);
    command.spec = spec_;
    command.network = network();
    const CellPlacement placement =
        PlacementOf(spec_.pipeline.schedule, stages == 0 ? this->stages() : stages,
                    spec_.pipeline.cells_per_stage);
    auto partition = UniformPartition(static_cast<int>(command.network->layers.size()),
                                      !placement.empty() ? static_cast<int>(placement.size())
                                      : stages == 0      ? this->stages()
                                                         : stages);
    CHECK_OK(partition.status());
    command.partition = *partition;
    command.partition.placement = placement;
    command.stage = StageId(k);
    for (const int cell : command.partition.CellsOfStage(k)) {
      CellNeighbours& neighbours = command.neighbours.emplace_back();
      if (cell + 1 < partition->cells()) neighbours.downstream_address = "in-process:1";
    }
    command.checkpoint_folder = checkpoint;
    return command;
  }

  // Loads the job on the first `stages` runtimes (0: all).
  absl::Status LoadAll(uint64_t generation, uint64_t step = 0, const std::string& checkpoint = "",
                       int stages = 0) {
    std::vector<LoadAnswer> answers(stages == 0 ? runtimes_.size() : stages);
    active_ = static_cast<int>(answers.size());
    for (int k = 0; k < active_; ++k) {
      runtime(k).Load(LoadOf(k, generation, step, checkpoint, stages), answers[k].callback());
    }
    for (LoadAnswer& answer : answers) RETURN_IF_ERROR(answer.Get().status());
    return absl::OkStatus();
  }

  absl::StatusOr<StepReport> Run(int k, const RunCommand& command) {
    RunAnswer answer;
    runtime(k).Run(command, answer.callback());
    return answer.Get();
  }

  // Runs the command on every loaded stage. Returns the first error if there was one.
  absl::StatusOr<std::vector<StepReport>> RunAll(const RunCommand& command) {
    std::vector<RunAnswer> answers(active_);
    for (int k = 0; k < active_; ++k) runtime(k).Run(command, answers[k].callback());
    std::vector<StepReport> reports;
    absl::Status status;
    for (RunAnswer& answer : answers) {
      absl::StatusOr<StepReport> report = answer.Get();
      if (!report.ok()) status.Update(report.status());
      if (report.ok()) reports.push_back(*std::move(report));
    }
    if (!status.ok()) return status;
    return reports;
  }

  static ApplyDecision Decision(uint64_t step) {
    return {.step = step, .optimizer_steps = step, .learning_rate = 0.05, .gradient_scale = 0.5};
  }
  static RunCommand Train(uint64_t generation, uint64_t step, bool applies) {
    RunCommand command{.fence = FenceOf(generation, step), .work = WorkKind::kTrain};
    if (applies) command.apply = Decision(step - 1);
    return command;
  }

  // Trains and applies steps [first, last). Returns the losses.
  absl::StatusOr<std::vector<double>> TrainSteps(uint64_t generation, uint64_t first,
                                                 uint64_t last) {
    std::vector<double> losses;
    for (uint64_t step = first; step < last; ++step) {
      ASSIGN_OR_RETURN(auto reports, RunAll(Train(generation, step, step > first)));
      losses.push_back(reports.back().loss_sum);
    }
    RunCommand apply{.fence = FenceOf(generation, last), .apply = Decision(last - 1)};
    ASSIGN_OR_RETURN(auto applied, RunAll(apply));
    return losses;
  }

  // Writes a committed checkpoint of the loaded stages, which are at `step`.
  absl::StatusOr<Manifest> Checkpoint(uint64_t generation, uint64_t step,
                                      const std::string& folder) {
    CHECK_OK(file_system_.MakeFolders(folder));
    Manifest manifest{.job = "a", .state = {.step = step}};
    for (int k = 0; k < active_; ++k) {
      ShardAnswer answer;
      runtime(k).WriteShard({.fence = FenceOf(generation, step), .folder = folder},
                            answer.callback());
      ASSIGN_OR_RETURN(ShardInfo shard, answer.Get());
      manifest.shards.push_back(std::move(shard));
    }
    WriteManifestFile(file_system_, folder, manifest);
    return manifest;
  }

  StageRuntime& runtime(int k) { return *runtimes_[k]; }
  const TraceRing& trace(int k) const { return *traces_[k]; }
  int stages() const { return static_cast<int>(runtimes_.size()); }
  JobSpec& spec() { return spec_; }
  FaultFileSystem& file_system() { return file_system_; }

 private:
  TemporaryFolder folder_;
  JobSpec spec_;
  FaultFileSystem file_system_;
  InProcessConnector connector_;
  std::unique_ptr<LinkConnector> wrapped_;
  std::vector<std::unique_ptr<TraceRing>> traces_;
  std::function<std::unique_ptr<StageRuntime>(int)> make_runtime_;
  std::vector<std::unique_ptr<StageRuntime>> runtimes_;
  int active_ = 0;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_TESTING_RUNTIME_FLEET_H_
