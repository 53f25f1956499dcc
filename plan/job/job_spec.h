// JobSpec: what a user asks for, in plain values. The wire form is stagecoach.v1.JobSpec; services
// converts. Nothing here knows of files, tensors or the network.
// Units and shapes: counts; N = batch_size in sequences, M = micro_batches, K = stages.
// Errors: ValidateJob is the one validator for the client, the API and recovery;
//         INVALID_ARGUMENT names the field path, the value and the remedy.
#ifndef STAGECOACH_PLAN_JOB_JOB_SPEC_H_
#define STAGECOACH_PLAN_JOB_JOB_SPEC_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/numbers/precision.h"
#include "network/network.h"
#include "network/network_spec.h"
#include "network/passes/lora.h"

namespace stagecoach {

// The step is a 32-bit word of the random numbers.
inline constexpr int64_t kMaxSteps = 1'000'000'000;
// Bounds of epochs, if given.
inline constexpr double kMinEpochs = 1e-6, kMaxEpochs = 1e6;
inline constexpr int64_t kMaxBatchSize = int64_t{1} << 20;
inline constexpr int64_t kMaxMicroBatches = int64_t{1} << 16;
inline constexpr int64_t kMaxStages = 1024;
inline constexpr int kMaxCellsPerStage = 16;
// Lower bound; 0 stands for epochs that are not given, and errors do not name it.
inline double LeastEpochs(double epochs) { return epochs == 0 ? 0 : kMinEpochs; }

// Structs below visit their fields as kinds do (operations/attributes.h), with two more verbs:
//   Field          any type; its range depends on other fields, so ValidateJob has it
//   UnlessDefault  a struct that messages leave out if it is as by default

// Which data set, of plan/job/data_kinds.h: `spec.data = TextData{.path = "input.txt"}`.
struct DataSpec : KindSpec {
  using KindSpec::KindSpec;
  DataSpec() = default;  // none
  explicit DataSpec(KindSpec spec) : KindSpec(std::move(spec)) {}
};

// A kind of plan/job/optimizer_kinds.h.
struct OptimizerSpec : KindSpec {
  using KindSpec::KindSpec;
  OptimizerSpec();  // adamw with its defaults
  explicit OptimizerSpec(KindSpec spec) : KindSpec(std::move(spec)) {}
};

// A kind of plan/job/learning_rate_kinds.h.
struct LearningRateSpec : KindSpec {
  using KindSpec::KindSpec;
  LearningRateSpec();  // constant, 1e-3
  explicit LearningRateSpec(KindSpec spec) : KindSpec(std::move(spec)) {}
};

// Ends a job before its steps are done: when an evaluation reaches all given goals.
struct UntilSpec {
  double loss = 0;                               // at most; 0: not given
  double accuracy = 0, top_5 = 0, mean_iou = 0;  // at least; 0: not given
  double bleu = 0;                               // likewise, of 100; of averages if there are some
  // By measure.
  std::array<std::pair<const char*, double>, 4> least() const {
    return {{{"accuracy", accuracy}, {"top_5", top_5}, {"mean_iou", mean_iou}, {"bleu", bleu}}};
  }
  bool given() const { return *this != UntilSpec(); }
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Between("loss", loss, 0, 1e12);
    visit.Between("accuracy", accuracy, 0, 1);
    visit.Between("top_5", top_5, 0, 1);
    visit.Between("mean_iou", mean_iou, 0, 1);
    visit.Between("bleu", bleu, 0, 100);
  }
  friend bool operator==(const UntilSpec&, const UntilSpec&) = default;
};

// A moving average of the weights beside them: average += (1 - decay) * (weights - average) after
// each update.
struct AverageSpec {
  double decay = 0;     // 0: none is kept
  bool warmup = false;  // the decay of update t, from 1, is at most (1 + t) / (10 + t)
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Rate("decay", decay);
    visit.Flag("warmup", warmup);
  }
  friend bool operator==(const AverageSpec&, const AverageSpec&) = default;
};

struct TrainingSpec {
  int64_t steps = 0;
  double epochs = 0;  // in the place of steps (plan/job/epochs.h); 0: not given
  int64_t batch_size = 0;
  int64_t micro_batches = 0;
  OptimizerSpec optimizer;
  LearningRateSpec learning_rate;
  double gradient_clip_norm = 0.0;   // 0: no clipping
  int64_t max_nonfinite_steps = 10;  // consecutive skipped steps before the job fails
  std::vector<std::string>
      freeze;  // patterns of parameters that are not trained (network/passes/freeze.h)
  UntilSpec until;
  AverageSpec average;
  LoraSpec lora;
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Between("epochs", epochs, LeastEpochs(epochs), kMaxEpochs);
    visit.Count("steps", steps, epochs == 0 ? 1 : 0, kMaxSteps);
    visit.Count("batch_size", batch_size, 1, kMaxBatchSize);
    visit.Count("micro_batches", micro_batches, 1, kMaxMicroBatches);
    visit.Between("gradient_clip_norm", gradient_clip_norm, 0, 1e12);
    visit.Count("max_nonfinite_steps", max_nonfinite_steps, 0, kMaxSteps);
    visit.Field("freeze", freeze);
    visit.UnlessDefault("until", until);
    visit.UnlessDefault("average", average);
    visit.UnlessDefault("lora", lora);
  }
  friend bool operator==(const TrainingSpec&, const TrainingSpec&) = default;
};

enum class Rematerialization { kAlways, kExceptFirst, kNever };

struct PartitionSpec {
  enum class Kind { kAuto, kUniform, kCuts };
  Kind kind = Kind::kAuto;
  std::vector<int64_t> cuts;  // kCuts: first layer of cells 1, 2, ...; strictly ascending
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Choice("rule", kind, {"auto", "uniform", ""});  // cuts stand for their rule
    visit.Field("cuts", cuts);
  }
  friend bool operator==(const PartitionSpec&, const PartitionSpec&) = default;
};

struct PipelineSpec {
  int64_t stages = 0;              // 0 = auto: those that are free when the job is placed
  int64_t min_stages = 0;          // fewest to run on, for auto and after a loss; 0 is 1
  std::string schedule = "gpipe";  // of plan/schedules/schedule_kinds.h
  std::string own_schedule;        // of schedule "own": its text (plan/schedules/own_schedule.h)
  int64_t cells_per_stage = 0;     // v; 0: as many as the schedule usually has
  Rematerialization rematerialization = Rematerialization::kAlways;
  PartitionSpec partition;
  // If stages are missing for longer than replacement_timeout_seconds: fail (false), or
  // re-partition over the remaining ones (true), min_stages at least.
  bool continue_with_fewer_stages = false;
  double replacement_timeout_seconds = 60;  // how long to wait for stages; then fail or shrink
  // Stages may have different fingerprints. They are placed in the order of their names, and a
  // recovery must find the same sequence of fingerprints: the bits depend on it.
  bool mixed_devices = false;
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Count("stages", stages, 0, kMaxStages);
    visit.Field("min_stages", min_stages);
    visit.Field("schedule", schedule);
    visit.Field("own_schedule", own_schedule);
    visit.Count("cells_per_stage", cells_per_stage, 0, kMaxCellsPerStage);
    visit.Choice("rematerialization", rematerialization, {"always", "except_first", "never"});
    visit.Field("partition", partition);
    visit.Flag("continue_with_fewer_stages", continue_with_fewer_stages);
    visit.Between("replacement_timeout_seconds", replacement_timeout_seconds, 0, 30.0 * 86400);
    visit.Flag("mixed_devices", mixed_devices);
  }
  friend bool operator==(const PipelineSpec&, const PipelineSpec&) = default;
};

struct CheckpointSpec {
  int64_t every_steps = 0;
  int64_t keep = 3;
  double every_epochs = 0;  // in the place of every_steps; 0: not given
  bool never = false;       // none before the last step
  // By time (coordinator/job/job_checkpoints.cc), if the job sets nothing else.
  bool automatic() const { return every_steps == 0 && every_epochs == 0 && !never; }
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Count("every_steps", every_steps, 0, kMaxSteps);
    visit.Count("keep", keep, 1, 1'000'000);
    visit.Between("every_epochs", every_epochs, LeastEpochs(every_epochs), kMaxEpochs);
    visit.Flag("never", never);
  }
  friend bool operator==(const CheckpointSpec&, const CheckpointSpec&) = default;
};

// Copies of the training state in the memory of the stages and of their neighbours, for recoveries
// that read no disk.
struct SnapshotSpec {
  int64_t every_steps =
      0;  // 0: 3 s of training, or so many more that they take 3.5 % of the time at most
  bool never = false;
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Count("every_steps", every_steps, 0, kMaxSteps);
    visit.Flag("never", never);
  }
  friend bool operator==(const SnapshotSpec&, const SnapshotSpec&) = default;
};

// Mini-batches of an evaluation, at most. What is held out has fewer, so the most is all of them.
inline constexpr int64_t kMostEvaluationBatches = 1'000'000;
inline constexpr int64_t kMostBeam = 64;
// Of lines, with kBytesBesideLine for each: a coordinator takes messages of 1 MiB.
inline constexpr size_t kMostWriteBytes = size_t{768} << 10, kBytesBesideLine = 4;

// Translations of held-out sentences by beam search (decoding/beam_search.h).
struct TranslateSpec {
  int64_t beam = 5;
  double length_penalty = 0.6;
  int64_t tokens = 0;   // most of a translation; 0: the network's target positions
  int64_t batches = 0;  // mini-batches; 0: those of the evaluation
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Count("beam", beam, 1, kMostBeam);
    visit.Between("length_penalty", length_penalty, 0, 10);
    visit.Count("tokens", tokens, 0, kMaxSteps);
    visit.Count("batches", batches, 0, kMostEvaluationBatches);
  }
  friend bool operator==(const TranslateSpec&, const TranslateSpec&) = default;
};

// Texts that continue prompts (decoding/text_group.h).
struct GenerateSpec {
  int64_t tokens = 200;      // most of a text
  double temperature = 0.8;  // 0: always the likeliest
  int64_t top_k = 0;         // of the likeliest tokens; 0: of all
  double top_p = 1;
  std::vector<std::string>
      stops;  // tokens that end a text: pieces of the tokenizer, or single bytes
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Count("tokens", tokens, 1, kMaxSteps);
    visit.Between("temperature", temperature, 0, 1e6);
    visit.Count("top_k", top_k, 0, kMaxSteps);
    visit.Between("top_p", top_p, 0, 1);
    visit.Field("stops", stops);
  }
  friend bool operator==(const GenerateSpec&, const GenerateSpec&) = default;
};

// Texts that the job writes with trained weights, in the place of training: translations of the lines,
// or continuations. A mini-batch of lines has training.batch_size of them, in training.micro_batches
// groups. The seed of the job is that of the choice.
struct WriteSpec {
  std::vector<std::string> lines;
  std::string tag;  // in front of each source; empty: none
  std::optional<TranslateSpec> translate;
  std::optional<GenerateSpec> generate;
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Field("lines", lines);
    visit.Field("tag", tag);
    visit.Field("translate", translate);
    visit.Field("generate", generate);
  }
  friend bool operator==(const WriteSpec&, const WriteSpec&) = default;
};

struct EvaluationSpec {
  int64_t every_steps = 0;  // 0: never
  int64_t batches = 0;      // mini-batches of the held-out split, at most all of them
  double every_epochs = 0;  // in the place of every_steps; 0: not given
  std::optional<TranslateSpec> translate;
  bool given() const { return every_steps > 0 || every_epochs > 0; }
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Count("every_steps", every_steps, 0, kMaxSteps);
    visit.Between("every_epochs", every_epochs, LeastEpochs(every_epochs), kMaxEpochs);
    visit.Count("batches", batches, given() ? 1 : 0, kMostEvaluationBatches);
    visit.Field("translate", translate);
  }
  friend bool operator==(const EvaluationSpec&, const EvaluationSpec&) = default;
};

// Initial weights of a job, instead of those from its seed.
struct InitializeSpec {
  // A safetensors file, a folder of exported weights, or one with shards and their index; empty:
  // none.
  std::string from;
  std::string names = "stagecoach";  // of its tensors: a table of network/names/weight_names.h
  // Patterns (base/files/name_patterns.h) of names, ours or the file's. Matching parameters begin
  // as without the file; matching tensors of the file alone are left out.
  std::vector<std::string> except;
  bool given() const { return !from.empty(); }
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Field("from", from);
    visit.Field("names", names);
    visit.Field("except", except);
  }
  friend bool operator==(const InitializeSpec&, const InitializeSpec&) = default;
};

// Start from the checkpoint of another job in the same store.
struct ResumeSpec {
  std::string job;               // empty: fresh weights
  int64_t step = -1;             // -1: newest
  bool fresh_optimizer = false;  // of the checkpoint, the weights only
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Field("job", job);
    visit.Count("step", step, -1, kMaxSteps);
    visit.Flag("fresh_optimizer", fresh_optimizer);
  }
  friend bool operator==(const ResumeSpec&, const ResumeSpec&) = default;
};

// Kinds (network, data, optimizer, learning rate) are in no visit: their lists read them.
struct JobSpec {
  std::string name;  // [a-z0-9-]{1,63}
  uint64_t seed = 0;
  Precision precision = Precision::kFloat32;
  NetworkSpec network;  // `model` in a job file
  DataSpec data;
  TrainingSpec training;
  PipelineSpec pipeline;
  CheckpointSpec checkpoint;
  SnapshotSpec snapshot;
  EvaluationSpec evaluation;
  InitializeSpec initialize;
  ResumeSpec resume;
  std::optional<WriteSpec> write;  // given: the job trains nothing
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Field("name", name);
    visit.Field("seed", seed);
    visit.Choice("precision", precision, {"float32", "tensorfloat32", "bfloat16"});
    visit.Field("training", training);
    visit.Field("pipeline", pipeline);
    visit.Field("checkpoint", checkpoint);
    visit.UnlessDefault("snapshot", snapshot);
    visit.Field("evaluation", evaluation);
    visit.UnlessDefault("initialize", initialize);
    visit.UnlessDefault("resume", resume);
    visit.Field("write", write);
  }
  friend bool operator==(const JobSpec&, const JobSpec&) = default;
};

// The network as the job trains it. Errors: INVALID_ARGUMENT with the field's path.
absl::StatusOr<Network> ExpandJob(const JobSpec& spec);
// ExpandJob for a valid job. Making a network takes milliseconds, so pass it on.
absl::StatusOr<Network> ExpandValidJob(const JobSpec& spec);
// Validates a job whose network is there already; `spec.network` is not looked at.
absl::Status ValidateJob(const JobSpec& spec, const Network& network);

// Most micro-batches on all stages together, K * M. A plan's time and memory grow with them. This
// many take half a second and 300 MB; the limits of K and M allow 256 times as many. If the spec
// sets the stages, ValidateJob checks. MakePlan checks always.
inline constexpr int64_t kMostPlanned = int64_t{1} << 18;
absl::Status CheckPlanSize(const JobSpec& spec, int64_t stages);
// Whether so many stages get the cells that the schedule wants of these layers. 0: not known yet.
absl::Status CheckCells(const PipelineSpec& pipeline, int64_t stages, int64_t layers);
// Most stages that so many layers are enough for.
int64_t MostStages(const PipelineSpec& pipeline, int64_t layers);

// Size of micro-batch i of M for a mini-batch of N: N / M, one more for the first N mod M.
int64_t MicroBatchSize(int64_t batch_size, int64_t micro_batches, int64_t i);

const char* RematerializationName(Rematerialization mode);  // "always", "except_first", "never"

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_JOB_JOB_SPEC_H_
