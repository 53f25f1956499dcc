// The commands that run a job, or look at one before it runs.
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "base/device_name.h"
#include "network/limits.h"
#include "plan/costs/cost_model.h"
#include "plan/job/job_spec.h"
#include "services/cli/command_tree.h"
#include "services/cli/size_text.h"
#include "stage/backends/simulated/simulated_backend.h"

namespace stagecoach {
namespace {

// Empty if a stage server takes this --device, as CLI11 wants it.
std::string CheckDevice(const std::string& device) {
  if (device == "cpu" || device == "reference") return "";
  if (ParseCudaDevice(device).ok() || ParseSimulatedDevice(device).ok()) return "";
  return absl::StrCat("want cpu, cuda[:N], reference or simulated[:GFLOP/s[:GB/s]], not ", device);
}

std::string CheckDevices(const std::string& list) {
  for (const std::string& device : std::vector<std::string>(absl::StrSplit(list, ','))) {
    if (std::string problem = CheckDevice(device); !problem.empty()) return problem;
  }
  return "";
}

// Makes "512MiB" the number of its bytes; what is wrong as CLI11 wants it.
std::string SizeToBytes(std::string& text) {
  const absl::StatusOr<int64_t> bytes = ParseSize(text);
  if (!bytes.ok()) return std::string(bytes.status().message());
  text = absl::StrCat(*bytes);
  return "";
}

void AddDevices(CLI::App* command, std::vector<std::string>* devices, const std::string& what) {
  command
      ->add_option_function<std::string>(
          "--device", [devices](const std::string& list) { *devices = absl::StrSplit(list, ','); },
          what)
      ->type_name("DEVICE")
      ->check(CheckDevices)
      ->default_str("cpu");
}

void AddMemoryPerStage(CLI::App* command, int64_t* bytes, const std::string& what) {
  command->add_option("--memory-per-stage", *bytes, what)
      ->type_name("SIZE")
      ->transform(CLI::Validator(SizeToBytes, ""));
}

void AddFile(CLI::App* command, std::string* file) {
  command->add_option("job", *file, "job spec, YAML or JSON; - for standard input")
      ->type_name("FILE")
      ->required();
}

void AddLocalClusterOptions(CLI::App* command, LocalClusterFlags* flags) {
  AddDevices(command, &flags->devices,
             "cpu, cuda[:N], reference or simulated[:GFLOP/s[:GB/s]]; or a list with commas, one a "
             "stage, repeated from its beginning if it is shorter: cuda:0,cpu");
  command
      ->add_option("--threads-per-stage", flags->threads_per_stage,
                   "default: the cores divided among the stages")
      ->check(CLI::Range(int64_t{1}, kMaxStages));
  AddMemoryPerStage(command, &flags->memory_per_stage,
                    "for tensors, as 512MiB; the job is planned to fit, and a stage takes no "
                    "more; default: no limit");
  // One value each time: what stands behind it may be the job's file.
  command
      ->add_option("--data-root", flags->data_roots,
                   "a folder, or a file, that stages may read beside the files that the job names; "
                   "repeatable")
      ->type_name("PATH")
      ->allow_extra_args(false);
}

void AddLocal(CommandTree& tree) {
  const auto [command, options] =
      tree.Add("local", "Run a job on a cluster of processes on this machine", RunLocal);
  AddFile(command, &options.file);
  command->add_option("--stages", options.stages, "number of stages K, instead of the job's")
      ->check(CLI::Range(int64_t{1}, kMaxStages));
  AddLocalClusterOptions(command, &options.cluster);
  command
      ->add_option("--state-dir", options.state_dir,
                   "journal, checkpoints, weights, logs; default: a new folder in "
                   "$XDG_STATE_HOME/stagecoach or ./stagecoach-runs")
      ->type_name("DIR");
  command->add_option("--id", options.id, "job id; default: the job's name");
  command
      ->add_option("--trace", options.trace_file,
                   "write a trace of the last steps when the job ends, for ui.perfetto.dev")
      ->type_name("FILE");
}

void AddSubmit(CommandTree& tree) {
  const auto [command, options] = tree.Add("submit", "Submit a job and follow it", RunSubmit);
  AddFile(command, &options.file);
  command->add_option("--id", options.id, "job id, [a-z0-9-]{1,63}; repeating it is harmless");
  command->add_flag("--detach", options.detach, "print the id and do not follow");
  command->add_flag("--dry-run", options.dry_run, "ask the cluster for the plan, run nothing");
  command->add_flag("--data-again", options.data_again,
                    "upload the data although the cluster has it, as it was damaged there");
}

void AddValidate(CommandTree& tree) {
  const auto [command, options] =
      tree.Add("validate", "Check a job spec and its data without a server", RunValidate);
  AddFile(command, &options.file);
  command->add_flag("--data-elsewhere", options.data_elsewhere,
                    "the job's data lies on the stages' machines, not on this one");
}

void AddImport(CommandTree& tree) {
  const auto [command, options] = tree.Add(
      "import", "Write a job file that trains the model of a Hugging Face folder", RunImport);
  command->add_option("folder", options.folder, "with config.json, safetensors and a tokenizer")
      ->type_name("DIR")
      ->required();
  command->add_option("--to", options.to, "the job file; default: standard output")
      ->type_name("FILE");
  command->add_option("--text", options.text, "file to train on")
      ->type_name("FILE")
      ->capture_default_str();
  command
      ->add_option("--tokenizer", options.tokenizer,
                   "tokenizer.json, or a SentencePiece model; default: the folder's")
      ->type_name("PATH");
  command
      ->add_option("--context", options.context,
                   "tokens of a sequence; default: the model's, but at most 1024")
      ->check(CLI::Range(int64_t{1}, kMaxContext));
}

void AddPlan(CommandTree& tree) {
  const auto [command, options] =
      tree.Add("plan", "Show partition, memory, forecast and timeline of a job", RunPlan);
  AddFile(command, &options.file);
  command->add_option("--stages", options.stages, "number of stages K, instead of the job's")
      ->check(CLI::Range(int64_t{1}, kMaxStages));
  AddDevices(command, &options.devices,
             "of the stages, as `local` takes them: a card needs memory beside its tensors; a "
             "coordinator that is asked knows its stages' own");
  AddMemoryPerStage(command, &options.memory_per_stage,
                    "that stages have, as 8GiB: the partition is made to fit, or refused; a "
                    "coordinator knows its stages' own: not with --server");
  command
      ->add_option("--threads-per-stage", options.threads_per_stage,
                   "that compute: each has memory of its own; default: as `local` has; a "
                   "coordinator knows its stages' own: not with --server")
      ->check(CLI::Range(int64_t{1}, kMaxStages));
  command
      ->add_option("--gflops", options.gflops,
                   absl::StrFormat("billions of FLOP/s of a stage, for the forecast of times; "
                                   "default: that of --device simulated:N, or %g, which is "
                                   "assumed; not with --server",
                                   kAssumedFlopsPerSecond / 1e9))
      ->check(CLI::Range(1e-3, 1e9))
      ->check([](const std::string& text) {  // a range lets it through
        double number = 0;
        return absl::SimpleAtod(text, &number) && std::isnan(number) ? "Value is no number" : "";
      });
  command->add_flag("--server", options.ask_server,
                    "ask the coordinator (default with --address or --cluster)");
  command->add_flag("--schedule", options.show_schedule, "also print the schedule as text");
}

void AddResume(CommandTree& tree) {
  const auto [command, options] =
      tree.Add("resume", "Go on with a job from its newest checkpoint", RunResume);
  command->add_option("job", options.job, "job id")->type_name("JOB")->required();
  command
      ->add_option("--stages", options.stages,
                   "number of stages K from now on; changes no bit of the result")
      ->check(CLI::Range(int64_t{1}, kMaxStages));
  command
      ->add_option("--steps", options.steps,
                   "train up to this step instead of the job's last one, as a new job")
      ->check(CLI::PositiveNumber);
  command->add_option("--id", options.id,
                      "of the new job, where one is made; default: the job's with a number");
  command
      ->add_option("--state-dir", options.state_dir,
                   "the folder of a `local` run: goes on in a cluster on this machine")
      ->type_name("DIR");
  AddLocalClusterOptions(command, &options.cluster);
}

void AddUi(CommandTree& tree) {
  const auto [command, folder] =
      tree.Add("ui", "Show the page of `local` runs that are over; runs nothing", RunUi);
  command->add_option("state-dir", folder, "the folder of a run, or one with folders of runs")
      ->type_name("DIR")
      ->required();
}

}  // namespace

void AddRunCommands(CommandTree& tree) {
  AddLocal(tree);
  AddSubmit(tree);
  AddValidate(tree);
  AddImport(tree);
  AddPlan(tree);
  AddResume(tree);
  AddUi(tree);
}

}  // namespace stagecoach
