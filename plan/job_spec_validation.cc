// ValidateJob: every field of a job spec, in the order of the YAML.
#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/errors/field_check.h"
#include "base/errors/status.h"
#include "base/files/name_patterns.h"
#include "base/job_name.h"
#include "network/lists/cost.h"
#include "network/names/weight_names.h"
#include "plan/data/data_sets_of.h"
#include "plan/decoding_checks.h"
#include "plan/job/data_kinds.h"
#include "plan/job/job_spec.h"
#include "plan/job/learning_rate_kinds.h"
#include "plan/job/optimizer_kinds.h"
#include "plan/range_check.h"
#include "plan/schedules/job_schedule.h"
#include "plan/schedules/own_schedule.h"
#include "plan/schedules/schedule_kinds.h"

namespace stagecoach {
namespace {

constexpr int64_t kMaxRows = (int64_t{1} << 31) - 1;  // of one micro-batch; BLAS counts in int32
constexpr int64_t kMaxRandomElements = int64_t{1} << 34;  // of one dropout mask

absl::Status ValidateName(const std::string& path, const std::string& name) {
  if (IsJobName(name)) return absl::OkStatus();
  return FieldError(path, absl::StrCat("\"", name.substr(0, 80), "\""),
                    absl::StrCat("must be ", kJobNameRule));
}

// What is in epochs has no other number in steps.
absl::Status CheckEpochField(const std::string& path, double epochs, bool steps) {
  if (epochs == 0 || !steps) return absl::OkStatus();
  return FieldError(path, absl::StrCat(epochs), "give steps or epochs, and not both");
}

absl::Status ValidateTraining(const TrainingSpec& training, const Network& network) {
  RETURN_IF_ERROR(CheckRanges("training.", training));
  RETURN_IF_ERROR(CheckEpochField("training.epochs", training.epochs, training.steps > 0));
  if (training.micro_batches > training.batch_size) {
    return FieldError("training.micro_batches", absl::StrCat(training.micro_batches),
                      absl::StrCat("must be <= training.batch_size = ", training.batch_size,
                                   ": a micro-batch has at least one sequence"));
  }
  const int64_t largest = MicroBatchSize(training.batch_size, training.micro_batches, 0);
  if (largest * network.targets() > kMaxRows) {
    return FieldError("training.batch_size", absl::StrCat(training.batch_size),
                      absl::StrCat("a micro-batch would have ", largest * network.targets(),
                                   " tokens; at most ", kMaxRows, ": raise micro_batches"));
  }
  RETURN_IF_ERROR(OptimizerKinds().Check(training.optimizer));
  RETURN_IF_ERROR(ValidateLearningRate(training.learning_rate));
  const bool epochs =
      LearningRateKinds().Named(training.learning_rate.kind).CountsEpochs(training.learning_rate);
  if (!epochs && training.epochs == 0) {  // else when the samples are known (CheckEpochs)
    RETURN_IF_ERROR(CheckWarmUp(training.learning_rate, training.steps));
  }
  RETURN_IF_ERROR(CheckRanges("training.average.", training.average));
  if (training.average.warmup && training.average.decay == 0) {
    return FieldError("training.average.warmup", "true",
                      "needs training.average.decay: 0.9999, say");
  }
  return absl::OkStatus();
}

absl::Status ValidateMasks(const TrainingSpec& training, const Network& network) {
  const int64_t largest = MicroBatchSize(training.batch_size, training.micro_batches, 0);
  for (const NetworkLayer& layer : network.layers) {
    const int64_t elements = MostDrawn(*layer.lists);
    if (elements <= kMaxRandomElements / largest) continue;
    return FieldError("training.micro_batches", absl::StrCat(training.micro_batches),
                      absl::StrCat("with dropout, layer ", layer.index, " (", layer.label,
                                   ") would draw over 2^34 numbers for one micro-batch of ",
                                   largest, " sequences: raise micro_batches or set dropout to 0"));
  }
  return absl::OkStatus();
}

// Batch norm's variance of one value is none.
absl::Status ValidateLeastSamples(const TrainingSpec& training, const Network& network) {
  const int64_t smallest =
      MicroBatchSize(training.batch_size, training.micro_batches, training.micro_batches - 1);
  for (const NetworkLayer& layer : network.layers) {
    const int64_t least = LeastSamples(*layer.lists);
    if (least <= smallest) continue;
    return FieldError(
        "training.micro_batches", absl::StrCat(training.micro_batches),
        absl::StrCat("layer ", layer.index, " (", layer.label, ") takes statistics of ", least,
                     " samples of a micro-batch or more, and the smallest micro-batch would have ",
                     smallest, ": use at most ", std::max<int64_t>(1, training.batch_size / least),
                     training.batch_size < least ? ", and a larger training.batch_size" : ""));
  }
  return absl::OkStatus();
}

absl::Status CheckCellsPerStage(const PipelineSpec& pipeline) {
  if (pipeline.schedule == kOwnSchedule) return absl::OkStatus();  // ValidateOwnSchedule looks at it
  const CellsPerStage cells = ScheduleKinds().Named(pipeline.schedule).cells_per_stage();
  const int64_t asked = pipeline.cells_per_stage;
  if (asked == 0 || (asked >= cells.least && asked <= cells.most)) return absl::OkStatus();
  return FieldError("pipeline.cells_per_stage", absl::StrCat(asked),
                    absl::StrCat("schedule ", pipeline.schedule, " has ", cells.least,
                                 cells.most > cells.least ? absl::StrCat(" to ", cells.most) : "",
                                 cells.most == 1 ? " cell" : " cells", " a stage"));
}

absl::Status ValidateCuts(const JobSpec& spec, int64_t layers) {
  const PipelineSpec& pipeline = spec.pipeline;
  const std::vector<int64_t>& cuts = pipeline.partition.cuts;
  const std::string path = "pipeline.partition.cuts";
  if (pipeline.stages == 0) {
    const int64_t each = CellsOfJob(spec, 1), fitting = (std::ssize(cuts) + 1) / each;
    return FieldError("pipeline.stages", "auto",
                      absl::StrCat("cuts fix the number of stages: write stages: ",
                                   std::max<int64_t>(1, fitting),
                                   (std::ssize(cuts) + 1) % each == 0
                                       ? ""
                                       : absl::StrCat(" and ", each * std::max<int64_t>(1, fitting) - 1,
                                                      " cuts")));
  }
  const int64_t cells = CellsOfJob(spec, pipeline.stages);
  if (std::ssize(cuts) != cells - 1) {
    return FieldError(
        path, absl::StrCat(cuts.size(), " cuts"),
        absl::StrCat("must be ", cells - 1, " for pipeline.stages = ", pipeline.stages,
                     cells > pipeline.stages ? absl::StrCat(" with ", cells, " cells") : ""));
  }
  int64_t previous = 0;
  for (size_t i = 0; i < cuts.size(); ++i) {
    const std::string element = absl::StrCat(path, "[", i, "]");
    RETURN_IF_ERROR(CheckInteger(element, cuts[i], 1, layers - 1));
    if (cuts[i] <= previous) {
      return FieldError(element, absl::StrCat(cuts[i]),
                        absl::StrCat("must be > ", previous, ": cuts ascend"));
    }
    previous = cuts[i];
  }
  return absl::OkStatus();
}

absl::Status ValidatePipeline(const JobSpec& spec, int64_t layers) {
  const PipelineSpec& pipeline = spec.pipeline;
  RETURN_IF_ERROR(ScheduleKinds().Find(pipeline.schedule).status());
  RETURN_IF_ERROR(CheckRanges("pipeline.", pipeline));
  RETURN_IF_ERROR(CheckCellsPerStage(pipeline));
  // Of `auto` there is one at least.
  RETURN_IF_ERROR(CheckCells(pipeline, std::max<int64_t>(1, pipeline.stages), layers));
  RETURN_IF_ERROR(
      CheckInteger("pipeline.min_stages", pipeline.min_stages, 0,
                   pipeline.stages > 0 ? pipeline.stages : MostStages(pipeline, layers)));
  RETURN_IF_ERROR(ValidateOwnSchedule(spec, layers));
  if (pipeline.partition.kind == PartitionSpec::Kind::kCuts) {
    RETURN_IF_ERROR(ValidateCuts(spec, layers));
  } else if (!pipeline.partition.cuts.empty()) {
    return FieldError("pipeline.partition.cuts",
                      absl::StrCat(pipeline.partition.cuts.size(), " cuts"),
                      "must be empty unless the partition is by cuts");
  }
  return absl::OkStatus();
}

absl::Status ValidateCheckpointAndEvaluation(const JobSpec& spec) {
  RETURN_IF_ERROR(CheckRanges("checkpoint.", spec.checkpoint));
  if (spec.checkpoint.never &&
      (spec.checkpoint.every_steps > 0 || spec.checkpoint.every_epochs > 0)) {
    return FieldError("checkpoint.never", "true",
                      "there is checkpoint.every_steps or every_epochs as well: leave one out");
  }
  RETURN_IF_ERROR(CheckRanges("snapshot.", spec.snapshot));
  if (spec.snapshot.never && spec.snapshot.every_steps > 0) {
    return FieldError("snapshot.never", "true",
                      "there is snapshot.every_steps as well: leave one out");
  }
  RETURN_IF_ERROR(CheckRanges("evaluation.", spec.evaluation));
  RETURN_IF_ERROR(CheckEpochField("checkpoint.every_epochs", spec.checkpoint.every_epochs,
                                  spec.checkpoint.every_steps > 0));
  RETURN_IF_ERROR(CheckEpochField("evaluation.every_epochs", spec.evaluation.every_epochs,
                                  spec.evaluation.every_steps > 0));
  if (spec.training.until.given() && !spec.evaluation.given()) {
    return FieldError("training.until", "given",
                      "it is an evaluation that ends the job: set evaluation.every_steps or "
                      "evaluation.every_epochs, and evaluation.batches");
  }
  return absl::OkStatus();
}

// A target that no evaluation measures would never be reached.
absl::Status ValidateUntil(const JobSpec& spec, const Network& network) {
  const UntilSpec& until = spec.training.until;
  RETURN_IF_ERROR(CheckRanges("training.until.", until));
  std::vector<std::string> measured = network.objective.measures();
  if (spec.evaluation.translate.has_value()) measured.emplace_back("bleu");
  if (until.bleu > 0 && !spec.evaluation.translate.has_value()) {
    return FieldError("training.until.bleu", absl::StrCat(until.bleu),
                      "translations are measured with evaluation.translate: give it");
  }
  for (const auto& [name, least] : until.least()) {
    const std::string path = absl::StrCat("training.until.", name);
    if (least == 0 || std::find(measured.begin(), measured.end(), name) != measured.end()) continue;
    return FieldError(path, absl::StrCat(least),
                      measured.empty()
                          ? "the objective measures nothing but the loss"
                          : absl::StrCat("the objective measures ", absl::StrJoin(measured, ", ")));
  }
  return absl::OkStatus();
}

absl::Status ValidateTranslate(const JobSpec& spec, const Network& network) {
  if (!spec.evaluation.translate.has_value()) return absl::OkStatus();
  const TranslateSpec& translate = *spec.evaluation.translate;
  const std::string path = "evaluation.translate";
  RETURN_IF_ERROR(CheckRanges(path + ".", translate));
  if (!spec.evaluation.given()) {
    return FieldError(path, "given",
                      "set evaluation.every_steps or evaluation.every_epochs as well");
  }
  if (translate.batches > spec.evaluation.batches) {
    return FieldError(path + ".batches", absl::StrCat(translate.batches),
                      absl::StrCat("at most evaluation.batches = ", spec.evaluation.batches));
  }
  RETURN_IF_ERROR(Annotate(CheckTranslates(spec, network), path));
  return CheckBeam(path, translate, spec, network);
}

absl::Status ValidateResume(const JobSpec& spec) {
  RETURN_IF_ERROR(CheckRanges("resume.", spec.resume));
  if (!spec.resume.job.empty()) return ValidateName("resume.job", spec.resume.job);
  if (spec.resume.fresh_optimizer) {
    return FieldError("resume.fresh_optimizer", "true",
                      "needs resume.job: whose weights to go on with");
  }
  if (spec.resume.step >= 0) {
    return FieldError("resume.step", absl::StrCat(spec.resume.step),
                      "needs resume.job: whose checkpoint it is");
  }
  return absl::OkStatus();
}

// Whether it matches one of the array's names, here or there.
bool Names(const std::string& pattern, const WeightName& name) {
  if (MatchesPattern(pattern, name.ours)) return true;
  const auto matches = [&pattern](const std::string& tensor) {
    return MatchesPattern(pattern, tensor);
  };
  return std::any_of(name.parts.begin(), name.parts.end(), [&matches](const WeightPart& part) {
    return matches(part.tensor) || std::any_of(part.aliases.begin(), part.aliases.end(), matches);
  });
}

// An array of the seed's values would stay random: it is frozen.
absl::Status CheckBaseIsWhole(const InitializeSpec& initialize, const Network& network) {
  const absl::StatusOr<WeightTable> table = WeightNames(network, initialize.names);
  if (!table.ok()) return absl::OkStatus();  // ValidateInitialize says so
  for (size_t i = 0; i < initialize.except.size(); ++i) {
    const std::string& pattern = initialize.except[i];
    for (const WeightName& name : table->names) {
      if (!Names(pattern, name)) continue;
      return FieldError(absl::StrCat("initialize.except[", i, "]"),
                        absl::StrCat("\"", pattern, "\""),
                        absl::StrCat("matches ", name.ours,
                                     ", which would stay random: with training.lora only adapters "
                                     "are trained"));
    }
  }
  return absl::OkStatus();
}

// Adapters are of no use without what they adapt, which no checkpoint holds.
absl::Status ValidateLora(const JobSpec& spec) {
  const LoraSpec& lora = spec.training.lora;
  RETURN_IF_ERROR(CheckRanges("training.lora.", lora));
  if (!lora.given()) {
    if (lora == LoraSpec()) return absl::OkStatus();
    return FieldError("training.lora.rank", "0", "give a rank as well: 8, say");
  }
  if (!spec.training.freeze.empty()) {
    return FieldError("training.freeze", absl::StrCat(spec.training.freeze.size(), " patterns"),
                      "with training.lora all but the adapters is frozen: leave it out");
  }
  if (spec.write.has_value()) {
    return FieldError("training.lora", "given",
                      "texts are written with whole weights: write with the folder of `stagecoach "
                      "export --names huggingface`, or without stages");
  }
  if (spec.initialize.given()) return absl::OkStatus();
  return FieldError("training.lora", "given",
                    "adapters need the weights that they adapt: set initialize.from");
}

// The file itself is looked at where it lies (stage/weights/weight_file.h).
absl::Status ValidateInitialize(const JobSpec& spec, const Network& network) {
  const InitializeSpec& initialize = spec.initialize;
  if (!initialize.given()) return absl::OkStatus();
  if (initialize.from.size() > kMaxText) {
    return FieldError("initialize.from", absl::StrCat(initialize.from.size(), " bytes"),
                      absl::StrCat("at most ", kMaxText));
  }
  if (!spec.resume.job.empty() && !spec.training.lora.given()) {
    return FieldError("initialize.from", absl::StrCat("\"", initialize.from, "\""),
                      absl::StrCat("the job has the weights of resume.job=", spec.resume.job,
                                   " already: leave one of the two out"));
  }
  const absl::Status names = WeightNames(network, initialize.names).status();
  if (!names.ok()) {
    return FieldError("initialize.names", absl::StrCat("\"", initialize.names, "\""),
                      std::string(names.message()));
  }
  return CheckPatterns(initialize.except, "initialize.except");
}

// Texts go once through all stages for each token: several cells a stage would only add messages.
absl::Status ValidateCellsOfWriting(const JobSpec& spec) {
  const PipelineSpec& pipeline = spec.pipeline;
  const bool writes = spec.write.has_value() || spec.evaluation.translate.has_value();
  const int64_t stages = std::max<int64_t>(1, pipeline.stages);
  if (!writes) return absl::OkStatus();
  ASSIGN_OR_RETURN(const ScheduleOptions options, ScheduleOptionsOf(spec, stages, /*layers=*/0));
  if (options.placement.empty()) return absl::OkStatus();
  return FieldError("pipeline.schedule", pipeline.schedule,
                    absl::StrCat("has several cells on a stage or cells in another order, and ",
                                 spec.write.has_value() ? "write" : "evaluation.translate",
                                 " needs cell k alone on stage k: use zero_bubble, say"));
}

}  // namespace

absl::Status CheckPlanSize(const JobSpec& spec, int64_t stages) {
  const int64_t micro_batches = spec.training.micro_batches;
  const int64_t each = CellsPerStageOf(spec.pipeline.schedule, spec.pipeline.cells_per_stage);
  const int64_t most = stages <= 0 ? micro_batches : kMostPlanned / stages / each;
  if (micro_batches <= most) return absl::OkStatus();
  return FieldError("training.micro_batches", absl::StrCat(micro_batches),
                    absl::StrCat("with pipeline.stages=", stages,
                                 each > 1 ? absl::StrCat(" of ", each, " cells each") : "",
                                 " at most ", most, ": their product may be ", kMostPlanned));
}

int64_t MostStages(const PipelineSpec& pipeline, int64_t layers) {
  return layers / CellsPerStageOf(pipeline.schedule, pipeline.cells_per_stage);
}

absl::Status CheckCells(const PipelineSpec& pipeline, int64_t stages, int64_t layers) {
  const int64_t each = CellsPerStageOf(pipeline.schedule, pipeline.cells_per_stage);
  if (stages <= layers / each) return absl::OkStatus();
  if (each == 1) {
    return FieldError("pipeline.stages", absl::StrCat(stages),
                      absl::StrCat("the model has ", layers,
                                   " layers and a stage needs one: use at most ", layers));
  }
  return FieldError(
      "pipeline.stages", absl::StrCat(stages),
      absl::StrCat(
          "the model has ", layers, " layers, and schedule ", pipeline.schedule, " has ", each,
          " cells of one layer or more on each stage: use ",
          layers < each ? "another schedule" : absl::StrCat("at most ", layers / each, " stages")));
}

absl::Status ValidateJob(const JobSpec& spec, const Network& network) {
  RETURN_IF_ERROR(ValidateName("name", spec.name));
  if (network.precision != spec.precision) {
    return FieldError("precision", PrecisionName(spec.precision),
                      absl::StrCat("the network was made for ", PrecisionName(network.precision)));
  }
  if (!spec.write.has_value() &&
      FirstTrainedLayer(network) == static_cast<int>(network.layers.size())) {
    return FieldError("model", "trains nothing", "must have a parameter that is not frozen");
  }
  RETURN_IF_ERROR(ValidateData(spec.data, network));
  RETURN_IF_ERROR(CheckBucketSpelling(spec));
  RETURN_IF_ERROR(ValidateTraining(spec.training, network));
  if (!spec.write.has_value()) {
    RETURN_IF_ERROR(ValidateMasks(spec.training, network));
    RETURN_IF_ERROR(ValidateLeastSamples(spec.training, network));
  }
  RETURN_IF_ERROR(ValidatePipeline(spec, static_cast<int64_t>(network.layers.size())));
  RETURN_IF_ERROR(CheckPlanSize(spec, spec.pipeline.stages));
  RETURN_IF_ERROR(ValidateCheckpointAndEvaluation(spec));
  RETURN_IF_ERROR(ValidateTranslate(spec, network));
  RETURN_IF_ERROR(ValidateCellsOfWriting(spec));
  RETURN_IF_ERROR(ValidateUntil(spec, network));
  RETURN_IF_ERROR(ValidateResume(spec));
  RETURN_IF_ERROR(ValidateWrite(spec, network));
  RETURN_IF_ERROR(ValidateLora(spec));
  RETURN_IF_ERROR(ValidateInitialize(spec, network));
  return spec.training.lora.given() ? CheckBaseIsWhole(spec.initialize, network) : absl::OkStatus();
}

absl::StatusOr<Network> ExpandValidJob(const JobSpec& spec) {
  RETURN_IF_ERROR(ValidateName("name", spec.name));
  ASSIGN_OR_RETURN(Network network, ExpandJob(spec));
  RETURN_IF_ERROR(ValidateJob(spec, network));
  return network;
}

}  // namespace stagecoach
