// The commands that ask a coordinator.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "plan/job/job_spec.h"
#include "services/cli/command_tree.h"

namespace stagecoach {
namespace {

// A trace of so many steps is more than a viewer can show.
constexpr uint32_t kMostTracedSteps = 10000;
constexpr uint32_t kMostLogLines = 1000000;

v1::JobState EndStateOf(const std::string& name) {
  if (name == "succeeded") return v1::JOB_STATE_SUCCEEDED;
  return name == "failed" ? v1::JOB_STATE_FAILED : v1::JOB_STATE_CANCELLED;
}

void AddJob(CLI::App* command, std::string* job) {
  command->add_option("job", *job, "job id")->type_name("JOB")->required();
}

void AddJobCommand(CommandTree& tree, const std::string& name, const std::string& description,
                   int (*run)(const std::string&, CommandContext&)) {
  const auto [command, job] = tree.Add(name, description, run);
  AddJob(command, &job);
}

void AddTrace(CommandTree& tree) {
  const auto [command, options] =
      tree.Add("trace", "Write what every stage did in a job's last steps", RunTrace);
  AddJob(command, &options.job);
  command->add_option("--steps", options.steps, "how many steps back; 0: all that there are")
      ->check(CLI::Range(uint32_t{0}, kMostTracedSteps))
      ->capture_default_str();
  command
      ->add_option("--file", options.file,
                   "Chrome trace JSON, opens in ui.perfetto.dev; - for standard output")
      ->type_name("FILE")
      ->capture_default_str();
  // Hides the shared option of this name, which once named the file and still may.
  command
      ->add_option_function<std::string>(
          "-o,--output",
          [&context = tree.context(), &file = options.file](const std::string& given) {
            const std::optional<OutputFormat> format = ParseOutputFormat(given);
            if (format.has_value()) context.output = *format;
            if (!format.has_value()) file = given;
          },
          "table, json or ndjson: how to tell what was written; anything else is --file")
      ->type_name("{table,json,ndjson}")
      ->default_str("table");
}

int RunLogsAsPrinted(const LogsOptions& given, CommandContext& context) {
  LogsOptions options = given;
  options.json = given.json || context.output != OutputFormat::kTable;
  return RunLogs(options, context);
}

void AddLogs(CommandTree& tree) {
  const auto [command, options] =
      tree.Add("logs", "Read the logs of a job's coordinator and stages", RunLogsAsPrinted);
  AddJob(command, &options.job);
  command->add_flag("-f,--follow", options.follow, "go on until the job ends");
  command->add_option("--stage", options.stage, "only this stage of the pipeline, from 0")
      ->check(CLI::Range(int32_t{0}, static_cast<int32_t>(kMaxStages)));
  command->add_option("--tail", options.tail, "only the last lines; default: all")
      ->check(CLI::Range(uint32_t{1}, kMostLogLines));
  command
      ->add_option_function<std::string>(
          "--format", [&json = options.json](const std::string& name) { json = name == "json"; },
          "text, or json: one object a line")
      ->check(CLI::IsMember({"text", "json"}))
      ->default_str("text");
}

void AddCheckpoints(CommandTree& tree) {
  CLI::App* checkpoints =
      tree.app().add_subcommand("checkpoints", "List, verify or remove checkpoints");
  checkpoints->require_subcommand(1);
  const auto add = [&](const std::string& name, const std::string& description, bool verify) {
    const auto [command, options] = tree.Add(name, description, RunCheckpoints, checkpoints);
    AddJob(command, &options.job);
    options.verify = verify;
  };
  add("list", "List a job's checkpoints", false);
  add("verify", "Also check every size and digest", true);
  const auto [remove, options] =
      tree.Add("remove", "Remove checkpoints of a job", RunRemoveCheckpoints, checkpoints);
  AddJob(remove, &options.job);
  remove
      ->add_option("step", options.steps, "steps of checkpoints, as `checkpoints list` shows them")
      ->type_name("STEP")
      ->required();
  remove->add_flag("--missing-ok", options.missing_ok,
                   "a step without a checkpoint is no error, as after a lost answer");
}

// "30d": seconds; empty if it is no age.
std::optional<double> ParseAge(const std::string& text) {
  constexpr std::pair<char, double> kUnits[] = {
      {'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}, {'w', 7 * 86400}};
  double number = 0;
  if (text.empty() || !absl::SimpleAtod(text.substr(0, text.size() - 1), &number)) return {};
  for (const auto& [unit, seconds] : kUnits) {
    // Infinity and NaN are numbers as well.
    if (text.back() == unit && number >= 0 && number < 1e9) return number * seconds;
  }
  return {};
}

void AddJobs(CommandTree& tree) {
  CLI::App* jobs = tree.app().add_subcommand("jobs", "Remove ended jobs");
  jobs->require_subcommand(1);
  const auto [prune, options] = tree.Add(
      "prune", "Remove ended jobs with their checkpoints, exports and records", RunPrune, jobs);
  prune
      ->add_option_function<std::string>(
          "--older-than",
          [&seconds = options.older_than_seconds](const std::string& text) {
            seconds = *ParseAge(text);
          },
          "only jobs that ended so long ago, as 30d, 12h, 2w; default: all")
      ->type_name("AGE")
      ->check([](const std::string& text) {
        return ParseAge(text).has_value() ? "" : absl::StrCat("want an age as 30d, not ", text);
      });
  prune->add_option("--keep", options.keep, "the newest ones that stay")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  prune
      ->add_option_function<std::vector<std::string>>(
          "--state",
          [&states = options.states](const std::vector<std::string>& names) {
            states.clear();
            for (const std::string& name : names) states.push_back(EndStateOf(name));
          },
          "only jobs that ended so; several with commas")
      ->delimiter(',')
      ->check(CLI::IsMember({"succeeded", "failed", "cancelled"}))
      ->default_str("succeeded,failed,cancelled");
  prune->add_flag("--dry-run", options.dry_run, "only show which, and what they occupy");
  prune->add_flag("-y,--yes", options.yes, "do not ask");
}

// Of --to.
std::string NamesAFolder(const std::string& path) {
  return path.empty() ? "--to: names no folder; name one that is not there yet" : "";
}

void AddRecords(CommandTree& tree) {
  const auto [command, options] =
      tree.Add("records", "Fetch a job's metrics.jsonl and TensorBoard files", RunRecords);
  AddJob(command, &options.job);
  command->add_option("--to", options.to, "a new folder of this machine")
      ->type_name("FOLDER")
      ->check(NamesAFolder)
      ->required();
}

void AddExport(CommandTree& tree) {
  const auto [command, options] =
      tree.Add("export", "Write a checkpoint's weights as one safetensors file", RunExport);
  command
      ->add_option("job", options.job,
                   "job id; with --names also a file or folder, as `generate` takes them")
      ->type_name("JOB|PATH")
      ->required();
  command->add_option("--step", options.step, "default: the newest checkpoint")
      ->check(CLI::NonNegativeNumber);
  CLI::Option* average =
      command->add_flag("--average", options.average,
                        "the averages of the weights (training.average) in their place");
  CLI::Option* names =
      command
          ->add_option(
              "--names", options.names,
              "also write the weights in these names and layouts: huggingface, torchvision "
              "or timm; peft: the adapters alone")
          ->type_name("{huggingface,peft,torchvision,timm}");
  CLI::Option* to =
      command
          ->add_option("--to", options.to,
                       "a new folder of this machine for the weights; with --names a file, for "
                       "huggingface and peft a folder")
          ->type_name("PATH")
          ->check(NamesAFolder);
  names->needs(to)->excludes(average);
  command->add_option("--job-file", options.job_file, "with --names, the job of a checkpoint")
      ->type_name("FILE")
      ->needs(names);
}

void AddData(CommandTree& tree) {
  CLI::App* data = tree.app().add_subcommand("data", "Keep data sets in the cluster");
  data->require_subcommand(1);
  const auto [put, options] = tree.Add(
      "put", "Upload files as a data set; what is there already is not sent", RunPutData, data);
  put->add_option("path", options.paths,
                  "files and folders; paths in the set begin in a folder "
                  "that is named alone, else with the last names")
      ->type_name("PATH")
      ->required();
  put->add_option("--name", options.name,
                  "of the set, for data.dataset of job files, [a-z0-9-]{1,63}; "
                  "one with a name stays until it is removed");
  put->add_flag("--replace", options.replace,
                "a set that has the name loses it, and this one another name that it has");
  put->add_flag(
      "--again", options.again,
      "upload what is there too, as it was damaged there; your other sets take the parts, too");
  tree.Add("list", "List data sets", RunListData, data);
  const auto add_set = [](CLI::App* command, std::string* data_set) {
    command->add_option("data-set", *data_set, "name, or id or its beginning")
        ->type_name("DATASET")
        ->required();
  };
  const auto [show, shown] = tree.Add("show", "Show a data set and its files", RunShowData, data);
  add_set(show, &shown);
  const auto [remove, removed] =
      tree.Add("remove", "Remove a data set that no job reads", RunRemoveData, data);
  add_set(remove, &removed.data_set);
  remove->add_flag("-y,--yes", removed.yes, "do not ask");
}

}  // namespace

void AddClusterCommands(CommandTree& tree) {
  tree.Add("list", "List jobs", RunList);
  AddJobCommand(tree, "describe", "Show one job", RunDescribe);
  AddJobCommand(tree, "watch", "Follow a job to its end", RunWatch);
  AddJobCommand(tree, "wait", "Wait for the end of a job", RunWait);
  AddJobCommand(tree, "cancel", "End a job", RunCancel);
  AddTrace(tree);
  AddLogs(tree);
  AddCheckpoints(tree);
  AddJobs(tree);
  AddData(tree);
  AddExport(tree);
  AddRecords(tree);
  tree.Add("stages", "List the stage servers", RunStages);
  const auto [health, server] = tree.Add("health", "Ask a server whether it serves", RunHealth);
  health->add_option("server", server, "host:port; default: the coordinator");
}

}  // namespace stagecoach
