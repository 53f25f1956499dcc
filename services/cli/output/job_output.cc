#include "services/cli/output/job_output.h"

#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/errors/check.h"
#include "plan/measure.h"
#include "services/cli/output/ndjson.h"
#include "services/cli/output/progress.h"
#include "services/cli/output/row_runs.h"
#include "services/cli/output/text.h"
#include "services/cli/output/throughput.h"
#include "services/common/convert/fields/enum_name.h"

namespace stagecoach {
namespace {

int64_t Total(const v1::MemoryBytes& memory) {
  return memory.parameters() + memory.gradients() + memory.optimizer() + memory.activations();
}

// Of a job that says nothing: what that means.
std::string PrecisionText(v1::Precision precision) {
  if (precision == v1::PRECISION_UNSPECIFIED) precision = v1::PRECISION_FLOAT32;
  const auto* value = v1::Precision_descriptor()->FindValueByNumber(precision);
  return value == nullptr ? absl::StrCat(precision) : ShortEnumName(*value);
}

std::string Percent(double share) { return absl::StrFormat("%.1f%%", share * 100); }

// Layers are a half-open range; people read the last one.
std::string LayerRange(int64_t first, int64_t last) {
  return last - first == 1 ? absl::StrCat(first) : absl::StrCat(first, "-", last - 1);
}

// Of all cells of a stage.
template <typename Stage>
std::string LayerRanges(const Stage& stage) {
  if (stage.cells().empty()) return LayerRange(stage.first_layer(), stage.last_layer());
  std::vector<std::string> ranges;
  for (const v1::LayerRange& cell : stage.cells()) {
    ranges.push_back(LayerRange(cell.first(), cell.last()));
  }
  return absl::StrJoin(ranges, ", ");
}

std::string LossText(const v1::Job& job) {
  return job.has_loss() ? absl::StrFormat("%.4f", job.loss()) : "-";
}

std::string Steps(const v1::Job& job) {
  if (job.total_steps() > 0) return absl::StrCat(job.step(), "/", job.total_steps());
  const double epochs = job.summary().epochs();
  return absl::StrCat(job.step(), ", ", epochs, epochs == 1 ? " epoch" : " epochs");
}

void AppendField(const std::string& name, const std::string& value, std::string* text) {
  if (!value.empty()) absl::StrAppendFormat(text, "%-15s %s\n", name + ":", value);
}

// Empty: nothing is known.
std::string UsageText(const v1::JobUsage& usage) {
  const std::string others = absl::StrCat("exports ", FormatBytes(usage.export_bytes()),
                                          ", records ", FormatBytes(usage.record_bytes()));
  if (!usage.checkpoints_error().empty()) {
    return TotalBytes(usage) == 0 ? "" : absl::StrCat("checkpoints not known, ", others);
  }
  return absl::StrCat(FormatBytes(TotalBytes(usage)), ": ", usage.checkpoints(),
                      usage.checkpoints() == 1 ? " checkpoint " : " checkpoints ",
                      FormatBytes(usage.checkpoint_bytes()), ", ", others);
}

std::string Gigaflops(double flops_per_second) {
  return absl::StrFormat("%g GFLOP/s", flops_per_second / 1e9);
}

// Behind a planned time.
std::string RateText(v1::RateSource source, double flops_per_second) {
  switch (source) {
    case v1::RATE_SOURCE_ASSUMED:
      return absl::StrCat("at an assumed ", Gigaflops(flops_per_second), " a stage");
    case v1::RATE_SOURCE_GIVEN:
      return absl::StrCat("at ", Gigaflops(flops_per_second), " a stage, as given");
    case v1::RATE_SOURCE_PROFILE:
      return "from a stage's profile";
    default:
      return "";
  }
}

std::string JobStageTable(const v1::Job& job) {
  Table table({"STAGE", "NAME", "ADDRESS", "LAYERS", "PEAK MEMORY"}, {0, 4});
  for (const v1::JobStage& stage : job.stages()) {
    table.Add({absl::StrCat(stage.stage()), stage.name(), stage.address(), LayerRanges(stage),
               FormatBytes(Total(stage.memory_peak()))});
  }
  return table.ToString();
}

// What the last evaluation measured of each class ("accuracy/3"); empty if nothing.
std::string ClassTable(const v1::Job& job) {
  std::vector<std::string> names;
  std::map<int64_t, std::map<std::string, double>> classes;
  for (const v1::Measure& measure : job.evaluation_measures()) {
    if (!IsOfAClass(measure.name())) continue;
    const std::pair<std::string, std::string> parts =
        absl::StrSplit(measure.name(), absl::MaxSplits('/', 1));
    int64_t number = 0;
    if (!absl::SimpleAtoi(parts.second, &number)) continue;
    if (std::count(names.begin(), names.end(), parts.first) == 0) names.push_back(parts.first);
    classes[number][parts.first] = measure.value();
  }
  if (classes.empty()) return "";
  std::vector<std::string> columns = {"CLASS"};
  std::vector<size_t> numbers = {0};
  for (const std::string& name : names) {
    numbers.push_back(columns.size());
    columns.push_back(absl::AsciiStrToUpper(name));
  }
  Table table(std::move(columns), std::move(numbers));
  for (const auto& [number, measures] : classes) {
    std::vector<std::string> row = {absl::StrCat(number)};
    for (const std::string& name : names) {
      const auto found = measures.find(name);
      row.push_back(found == measures.end() ? "-" : absl::StrFormat("%.4f", found->second));
    }
    table.Add(std::move(row));
  }
  return table.ToString();
}

}  // namespace

std::string ToJson(const google::protobuf::Message& message, OutputFormat format) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = true;  // a 0 is an answer, here as over HTTP
  options.add_whitespace = format == OutputFormat::kJson;
  std::string text;
  const auto status = google::protobuf::util::MessageToJsonString(message, &text, options);
  CHECK(status.ok()) << "a message that was received can be printed: " << status.ToString();
  if (text.empty() || text.back() != '\n') text += '\n';
  return text;
}

std::string JobTable(const v1::ListJobsResponse& jobs, const Console& console) {
  Table table({"ID", "NAME", "STEP", "LOSS", "SUBMITTED", "STATE"}, {2, 3});
  for (const v1::Job& job : jobs.jobs()) {
    table.Add({job.id(), job.summary().name(), Steps(job), LossText(job),
               FormatUnixTime(job.submitted_unix_seconds()),
               console.ColoredState(StateName(job.state()))});
  }
  return table.ToString();
}

std::string JobDescription(const v1::Job& job, const Console& console) {
  std::string text;
  AppendField("Id", job.id(), &text);
  AppendField("Name", job.summary().name(), &text);
  const std::string state = console.ColoredState(StateName(job.state()));
  AppendField("State", job.detail().empty() ? state : absl::StrCat(state, " (", job.detail(), ")"),
              &text);
  AppendField("Message", job.message(), &text);
  AppendField("Submitted", FormatUnixTime(job.submitted_unix_seconds()), &text);
  AppendField("Owner", job.owner(), &text);
  if (job.has_finished_unix_seconds()) {
    AppendField("Finished", FormatUnixTime(job.finished_unix_seconds()), &text);
  }
  AppendField("Precision", PrecisionText(job.spec().precision()), &text);
  AppendField("Step", Steps(job), &text);
  const bool writes = job.spec().has_write();
  if (!writes) AppendField("Loss", LossText(job), &text);
  if (job.has_evaluation_loss()) {
    AppendField("Held-out loss", absl::StrFormat("%.4f", job.evaluation_loss()), &text);
    for (const v1::Measure& measure : job.evaluation_measures()) {
      if (IsOfAClass(measure.name())) continue;
      AppendField(absl::StrCat("Held-out ", measure.name()), MeasureText(measure), &text);
    }
  }
  if (writes && job.tokens_per_second() > 0) {  // forecast and bubble are of training
    AppendField("Throughput", absl::StrCat(FormatCount(job.tokens_per_second()), " tokens/s"),
                &text);
  }
  if (!writes && job.step_seconds() > 0) {
    const std::string source =
        RateText(job.forecast_rate_source(), job.forecast_flops_per_second());
    AppendField("Step time",
                absl::StrCat(FormatSeconds(job.step_seconds()), " (forecast ",
                             FormatSeconds(job.forecast_step_seconds()), source.empty() ? "" : " ",
                             source, ")"),
                &text);
    const Throughput rate = ThroughputOf(job.spec(), job.tokens_per_second(), job.step_seconds());
    AppendField("Throughput", absl::StrCat(FormatCount(rate.per_second), " ", rate.what, "/s"),
                &text);
    AppendField("Bubble",
                absl::StrCat(Percent(job.bubble()), " (ideal ", Percent(job.bubble_ideal()), ")"),
                &text);
  }
  if (!writes) AppendField("Skipped steps", absl::StrCat(job.skipped_steps()), &text);
  AppendField("Recoveries", absl::StrCat(job.recoveries()), &text);
  const std::string& unlisted = job.usage().checkpoints_error();
  if (job.has_last_checkpoint_step()) {
    AppendField("Checkpoint", absl::StrCat("step ", job.last_checkpoint_step()), &text);
  } else if (!unlisted.empty()) {
    AppendField("Checkpoint", absl::StrCat("not known: the store does not tell: ", unlisted),
                &text);
  }
  if (job.has_snapshot_step()) {
    AppendField("In memory", absl::StrCat("step ", job.snapshot_step(), ", with copies"), &text);
  }
  if (job.has_usage()) {
    AppendField("On disk", UsageText(job.usage()), &text);
  }
  AppendField("Weights", job.weights_folder(), &text);
  AppendField("Weights digest", job.weights_digest(), &text);
  if (job.stages_size() > 0) absl::StrAppend(&text, "\n", JobStageTable(job));
  if (const std::string classes = ClassTable(job); !classes.empty()) {
    absl::StrAppend(&text, "\n", classes);
  }
  return text;
}

int64_t TotalBytes(const v1::JobUsage& usage) {
  return usage.checkpoint_bytes() + usage.export_bytes() + usage.record_bytes();
}

std::string UsageTable(const std::vector<v1::Job>& jobs, const Console& console) {
  Table table({"ID", "FINISHED", "CHECKPOINTS", "SIZE", "STATE"}, {2, 3});
  for (const v1::Job& job : jobs) {
    table.Add({job.id(), FormatUnixTime(job.finished_unix_seconds()),
               absl::StrCat(job.usage().checkpoints()), FormatBytes(TotalBytes(job.usage())),
               console.ColoredState(StateName(job.state()))});
  }
  return table.ToString();
}

std::string StageTable(const v1::ListStagesResponse& stages, double now_unix_seconds,
                       const Console& console) {
  Table table({"NAME", "STATE", "JOB", "ADDRESS", "DEVICE", "VERSION", "HEARTBEAT"}, {6});
  for (const v1::StageInfo& info : stages.stages()) {
    const double age = std::max(0.0, now_unix_seconds - info.last_heartbeat_unix_seconds());
    table.Add({info.stage().name(), console.ColoredState(info.state()),
               info.job_id().empty() ? "-" : info.job_id(), info.stage().address(),
               info.stage().device(), info.stage().version(), absl::StrFormat("%.1f s ago", age)});
  }
  return table.ToString();
}

std::string CheckpointTable(const v1::ListCheckpointsResponse& checkpoints,
                            const Console& console) {
  Table table({"STEP", "SIZE", "STAGES", "LOSS", "FOLDER", "STATE"}, {0, 1, 2, 3});
  for (const v1::CheckpointInfo& info : checkpoints.checkpoints()) {
    if (!info.error().empty()) {
      table.Add({absl::StrCat(info.step()), "-", "-", "-", info.folder(), info.error()});
      continue;
    }
    table.Add({absl::StrCat(info.step()), FormatBytes(info.bytes()), absl::StrCat(info.stages()),
               absl::StrFormat("%.4f", info.loss()), info.folder(), console.ColoredState("ok")});
  }
  return table.ToString();
}

namespace {

// Which share of what crosses a cut behind the layer is its own; in a chain all.
std::string OwnShare(const v1::PlannedLayer& layer) {
  if (layer.cut_bytes() == 0) return "-";
  return absl::StrFormat("%.0f%%", 100.0 * static_cast<double>(layer.own_cut_bytes()) /
                                       static_cast<double>(layer.cut_bytes()));
}

// Longer tables show rows that repeat once.
constexpr int kLongTable = 40;
constexpr int kLongestPeriod = 4;  // layers of a block that a network repeats

// Of one sample; without the layer's number and its stage.
std::vector<std::string> LayerCells(const v1::PlannedLayer& layer) {
  return {layer.label(),
          absl::StrJoin(layer.outputs(), ", "),
          FormatCount(static_cast<double>(layer.parameters())),
          FormatCount(static_cast<double>(layer.forward_flops())),
          FormatCount(static_cast<double>(layer.backward_flops())),
          FormatBytes(layer.cut_bytes()),
          OwnShare(layer)};
}

std::vector<RowRun> RunsOf(const std::vector<std::vector<std::string>>& rows, int longest_period) {
  std::vector<std::string> keys;
  for (const std::vector<std::string>& row : rows) keys.push_back(absl::StrJoin(row, "\n"));
  const bool is_long = static_cast<int>(rows.size()) > kLongTable;
  return FindRowRuns(keys, is_long ? longest_period : 0);
}

int StageOfLayer(const v1::PlanJobResponse& plan, int layer) {
  const auto has = [layer](const auto& range) {
    return range.first <= layer && layer < range.last;
  };
  for (int k = 0; k < plan.stages_size(); ++k) {
    const v1::PlannedStage& stage = plan.stages(k);
    struct Range {
      int64_t first, last;
    };
    if (has(Range{stage.first_layer(), stage.last_layer()})) return k;
    for (const v1::LayerRange& cell : stage.cells()) {
      if (has(Range{cell.first(), cell.last()})) return k;
    }
  }
  return 0;
}

std::string PlannedLayerTable(const v1::PlanJobResponse& plan) {
  Table table({"LAYER", "WHAT", "GIVES", "PARAMETERS", "FORWARD FLOPS", "BACKWARD FLOPS", "CUT",
               "OWN", "STAGE"},
              {0, 3, 4, 5, 6, 7, 8});
  std::vector<std::vector<std::string>> rows;
  std::vector<int> stages;
  for (int i = 0; i < plan.layers_size(); ++i) {
    rows.push_back(LayerCells(plan.layers(i)));
    stages.push_back(StageOfLayer(plan, i));
  }
  for (const RowRun& run : RunsOf(rows, kLongestPeriod)) {
    const int again = run.first + run.period;
    for (int i = run.first; i < again; ++i) {
      std::vector<std::string> row = {absl::StrCat(i)};
      row.insert(row.end(), rows[i].begin(), rows[i].end());
      row.push_back(absl::StrCat(stages[i]));
      table.Add(std::move(row));
    }
    if (run.times() == 1) continue;
    const auto [least, most] =
        std::minmax_element(stages.begin() + again, stages.begin() + run.last);
    table.Add({LayerRange(again, run.last),
               absl::StrCat(LayerRange(run.first, again), " again, ", run.times() - 1, " times"),
               "", "", "", "", "", "", LayerRange(*least, *most + 1)});
  }
  return table.ToString();
}

// Without the stage's number and its layers.
std::vector<std::string> StageCells(const v1::PlannedStage& stage) {
  const v1::MemoryBytes& memory = stage.memory();
  return {FormatCount(static_cast<double>(stage.parameters())),
          FormatSeconds(stage.forward_seconds()),
          FormatSeconds(stage.backward_seconds()),
          FormatBytes(memory.parameters()),
          FormatBytes(memory.gradients()),
          FormatBytes(memory.optimizer()),
          FormatBytes(memory.activations()),
          FormatBytes(Total(memory)),
          stage.process_bytes() > 0 ? FormatBytes(stage.process_bytes()) : "-"};
}

std::string PlannedStageTable(const v1::PlanJobResponse& plan) {
  Table table({"STAGE", "LAYERS", "PARAMETERS", "FORWARD", "BACKWARD", "WEIGHTS", "GRADIENTS",
               "OPTIMIZER", "ACTIVATIONS", "MEMORY", "PROCESS"},
              {0, 2, 3, 4, 5, 6, 7, 8, 9, 10});
  std::vector<std::vector<std::string>> rows;
  for (const v1::PlannedStage& stage : plan.stages()) {
    rows.push_back(StageCells(stage));
    // Stages with several cells have rows of their own.
    rows.back().push_back(stage.cells().empty()
                              ? absl::StrCat(stage.last_layer() - stage.first_layer(), " each")
                              : LayerRanges(stage));
  }
  for (const RowRun& run : RunsOf(rows, 1)) {
    const v1::PlannedStage &first = plan.stages(run.first), &last = plan.stages(run.last - 1);
    std::string layers = first.cells().empty() ? LayerRange(first.first_layer(), last.last_layer())
                                               : LayerRanges(first);
    if (run.times() > 1) absl::StrAppend(&layers, ", ", rows[run.first].back());
    std::vector<std::string> row = {LayerRange(run.first, run.last), std::move(layers)};
    row.insert(row.end(), rows[run.first].begin(), rows[run.first].end() - 1);
    table.Add(std::move(row));
  }
  return table.ToString();
}

}  // namespace

std::string PlanText(const v1::PlanJobResponse& plan, bool with_schedule) {
  int64_t parameters = 0;
  for (const v1::PlannedStage& stage : plan.stages()) parameters += stage.parameters();
  const std::string rate = RateText(plan.rate_source(), plan.flops_per_second());
  std::string text;
  if (plan.layers_size() > 0) text = absl::StrCat(PlannedLayerTable(plan), "\n");
  absl::StrAppend(&text, PlannedStageTable(plan), "\nprecision   ", PrecisionText(plan.precision()),
                  "\nparameters  ", parameters, "\nstep time   ",
                  FormatSeconds(plan.step_seconds()), " forecast", rate.empty() ? "" : " ", rate,
                  "\nbubble      ", Percent(plan.bubble()), " forecast, ",
                  Percent(plan.bubble_ideal()), " ideal with equal cells and free links\n");
  if (!plan.timeline().empty()) absl::StrAppend(&text, "\n", plan.timeline());
  if (with_schedule) {
    absl::StrAppend(&text, "\n",
                    plan.schedule().empty()
                        ? "the schedule is too long to be sent; plan without a server to see it"
                        : plan.schedule());
  }
  if (!text.empty() && text.back() != '\n') text += '\n';
  return text;
}

}  // namespace stagecoach
