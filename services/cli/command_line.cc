#include "services/cli/command_line.h"

#include <CLI/CLI.hpp>
#include <cmath>
#include <functional>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "base/device_name.h"
#include "plan/costs/cost_model.h"
#include "services/cli/command_mistake.h"
#include "services/cli/commands/commands.h"
#include "services/cli/completion.h"
#include "services/cli/output/exit_code.h"
#include "services/cli/size_text.h"
#include "stage/backends/simulated/simulated_backend.h"

namespace stagecoach {
namespace {

constexpr char kDefaultAddress[] = "localhost:8001";
// A trace of so many steps is more than a viewer can show.
constexpr uint32_t kMostTracedSteps = 10000;
constexpr uint32_t kMostLogLines = 1000000;
// Limits of numbers on the command line; what a job may hold is checked by its validator.
constexpr int64_t kMostStages = 1024;

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

void AddMemoryPerStage(CLI::App* command, int64_t* bytes, const std::string& what) {
  command->add_option("--memory-per-stage", *bytes, what)
      ->type_name("SIZE")
      ->transform(CLI::Validator(SizeToBytes, ""));
}

// The options of every command, and the function that the chosen one left.
class CommandTree {
 public:
  CommandTree(Console* console, StopSignal* stop)
      : app_("Trains neural networks by pipeline parallelism.", "stagecoach") {
    context_.console = console;
    context_.stop = stop;
    context_.client.address = kDefaultAddress;
    app_.require_subcommand(1);
    app_.fallthrough();  // shared options may stand behind the command too
    AddSharedOptions();
    AddRunCommands();
    AddResumeCommands();
    AddJobCommands();
    AddTelemetryCommands();
    AddCheckpointCommands();
    AddServerCommands();
    AddPictureCommands();
    AddOtherCommands();
  }

  int Run(int argc, const char* const* argv) {
    try {
      app_.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
      return ReportParse(error);
    }
    context_.address_given = address_->count() > 0;
    return run_();
  }

 private:
  int ReportParse(const CLI::ParseError& error) {
    // Help is no error, but comes as one.
    std::ostringstream out, errors;
    const int code = app_.exit(error, out, errors);
    if (!out.str().empty()) context_.console->Print(out.str());
    if (code == 0) return kExitSuccess;
    context_.console->Note(absl::StrCat("stagecoach: ", DescribeMistake(app_, error.what()),
                                        "\nRun with --help for more."));
    return kExitUsage;
  }

  void AddSharedOptions() {
    address_ = app_.add_option("--address", context_.client.address, "coordinator, host:port")
                   ->envname("STAGECOACH_ADDRESS")
                   ->capture_default_str();
    app_.add_option("--timeout", context_.client.timeout_seconds, "seconds that one call may take")
        ->check(CLI::Range(0.1, 3600.0))
        ->capture_default_str();
    app_.add_option_function<std::string>(
            "-o,--output",
            [this](const std::string& name) { context_.output = *ParseOutputFormat(name); },
            "how results are printed")
        ->check(CLI::IsMember({"table", "json", "ndjson"}))
        ->default_str("table");
    TlsFlags& tls = context_.client.tls;
    app_.add_flag("--grpc-use-ssl", tls.use_ssl, "mutual TLS to the coordinator");
    app_.add_option("--grpc-server-cert", tls.server_cert, "PEM certificate of this client")
        ->type_name("FILE");
    app_.add_option("--grpc-server-key", tls.server_key, "PEM private key of this client")
        ->type_name("FILE");
    app_.add_option("--grpc-root-cert", tls.root_cert, "PEM certificates of the authority")
        ->type_name("FILE");
    app_.add_option("--token-file", tls.token_file,
                    "in place of a certificate: the file with the token to call with")
        ->type_name("FILE");
  }

  CLI::App* Add(const std::string& name, const std::string& description, std::function<int()> run) {
    CLI::App* command = app_.add_subcommand(name, description);
    command->callback([this, run = std::move(run)] { run_ = run; });
    return command;
  }

  static void AddFile(CLI::App* command, std::string* file) {
    command->add_option("job", *file, "job spec, YAML or JSON; - for standard input")
        ->type_name("FILE")
        ->required();
  }

  static void AddLocalClusterOptions(CLI::App* command, LocalClusterFlags* flags) {
    command
        ->add_option_function<std::string>(
            "--device",
            [flags](const std::string& list) { flags->devices = absl::StrSplit(list, ','); },
            "cpu, cuda[:N], reference or simulated[:GFLOP/s[:GB/s]]; or a list with commas, one a "
            "stage, "
            "repeated from its beginning if it is shorter: cuda:0,cpu")
        ->type_name("DEVICE")
        ->check(CheckDevices)
        ->default_str("cpu");
    command
        ->add_option("--threads-per-stage", flags->threads_per_stage,
                     "default: the cores divided among the stages")
        ->check(CLI::Range(int64_t{1}, kMostStages));
    AddMemoryPerStage(command, &flags->memory_per_stage,
                      "for tensors, as 512MiB; the job is planned to fit, and a stage takes no "
                      "more; default: no limit");
    // One value each time: what stands behind it may be the job's file.
    command
        ->add_option(
            "--data-root", flags->data_roots,
            "a folder, or a file, that stages may read beside the files that the job names; "
            "repeatable")
        ->type_name("PATH")
        ->allow_extra_args(false);
  }

  // What goes on with, or looks at, what was run before.
  void AddResumeCommands() {
    CLI::App* resume = Add("resume", "Go on with a job from its newest checkpoint",
                           [this] { return RunResume(resume_, context_); });
    resume->add_option("job", resume_.job, "job id")->type_name("JOB")->required();
    resume
        ->add_option("--stages", resume_.stages,
                     "number of stages K from now on; changes no bit of the result")
        ->check(CLI::Range(int64_t{1}, kMostStages));
    resume
        ->add_option("--steps", resume_.steps,
                     "train up to this step instead of the job's last one, as a new job")
        ->check(CLI::PositiveNumber);
    resume->add_option("--id", resume_.id,
                       "of the new job, where one is made; default: the job's with a number");
    resume
        ->add_option("--state-dir", resume_.state_dir,
                     "the folder of a `local` run: goes on in a cluster on this machine")
        ->type_name("DIR");
    AddLocalClusterOptions(resume, &resume_.cluster);

    CLI::App* ui = Add("ui", "Show the page of `local` runs that are over; runs nothing",
                       [this] { return RunUi(ui_folder_, context_); });
    ui->add_option("state-dir", ui_folder_, "the folder of a run, or one with folders of runs")
        ->type_name("DIR")
        ->required();
  }

  void AddRunCommands() {
    CLI::App* local = Add("local", "Run a job on a cluster of processes on this machine",
                          [this] { return RunLocal(local_, context_); });
    AddFile(local, &local_.file);
    local->add_option("--stages", local_.stages, "number of stages K, instead of the job's")
        ->check(CLI::Range(int64_t{1}, kMostStages));
    AddLocalClusterOptions(local, &local_.cluster);
    local
        ->add_option("--state-dir", local_.state_dir,
                     "journal, checkpoints, weights, logs; default: a new folder in "
                     "$XDG_STATE_HOME/stagecoach or ./stagecoach-runs")
        ->type_name("DIR");
    local->add_option("--id", local_.id, "job id; default: the job's name");
    local
        ->add_option("--trace", local_.trace_file,
                     "write a trace of the last steps when the job ends, for ui.perfetto.dev")
        ->type_name("FILE");

    CLI::App* submit = Add("submit", "Submit a job and follow it",
                           [this] { return RunSubmit(submit_, context_); });
    AddFile(submit, &submit_.file);
    submit->add_option("--id", submit_.id, "job id, [a-z0-9-]{1,63}; repeating it is harmless");
    submit->add_flag("--detach", submit_.detach, "print the id and do not follow");
    submit->add_flag("--dry-run", submit_.dry_run, "ask the cluster for the plan, run nothing");

    CLI::App* validate = Add("validate", "Check a job spec and its data without a server",
                             [this] { return RunValidate(validate_, context_); });
    AddFile(validate, &validate_.file);
    validate->add_flag("--data-elsewhere", validate_.data_elsewhere,
                       "the job's data lies on the stages' machines, not on this one");

    CLI::App* plan = Add("plan", "Show partition, memory, forecast and timeline of a job",
                         [this] { return RunPlan(plan_, context_); });
    AddFile(plan, &plan_.file);
    plan->add_option("--stages", plan_.stages, "number of stages K, instead of the job's")
        ->check(CLI::Range(int64_t{1}, kMostStages));
    plan->add_option_function<std::string>(
            "--device",
            [this](const std::string& list) { plan_.devices = absl::StrSplit(list, ','); },
            "of the stages, as `local` takes them: a card needs memory beside its tensors; a "
            "coordinator that is asked knows its stages' own")
        ->type_name("DEVICE")
        ->check(CheckDevices)
        ->default_str("cpu");
    AddMemoryPerStage(plan, &plan_.memory_per_stage,
                      "that stages have, as 8GiB: the partition is made to fit, or refused; a "
                      "coordinator knows its stages' own: not with --server");
    plan->add_option("--threads-per-stage", plan_.threads_per_stage,
                     "that compute: each has memory of its own; default: as `local` has; a "
                     "coordinator knows its stages' own: not with --server")
        ->check(CLI::Range(int64_t{1}, kMostStages));
    plan->add_option("--gflops", plan_.gflops,
                     absl::StrFormat("billions of FLOP/s of a stage, for the forecast of times; "
                                     "default: %g, which is assumed; not with --server",
                                     kAssumedFlopsPerSecond / 1e9))
        ->check(CLI::Range(1e-3, 1e9))
        ->check([](const std::string& text) {  // a range lets it through
          double number = 0;
          return absl::SimpleAtod(text, &number) && std::isnan(number) ? "Value is no number" : "";
        });
    plan->add_flag("--server", plan_.ask_server, "ask the coordinator (default with --address)");
    plan->add_flag("--schedule", plan_.show_schedule, "also print the schedule as text");
  }

  CLI::App* AddJobCommand(const std::string& name, const std::string& description,
                          int (*run)(const std::string&, CommandContext&)) {
    CLI::App* command = Add(name, description, [this, run] { return run(job_, context_); });
    command->add_option("job", job_, "job id")->type_name("JOB")->required();
    return command;
  }

  void AddJobCommands() {
    Add("list", "List jobs", [this] { return RunList(context_); });
    AddJobCommand("describe", "Show one job", RunDescribe);
    AddJobCommand("watch", "Follow a job to its end", RunWatch);
    AddJobCommand("wait", "Wait for the end of a job", RunWait);
    AddJobCommand("cancel", "End a job", RunCancel);
  }

  void AddTelemetryCommands() {
    CLI::App* trace = Add("trace", "Write what every stage did in a job's last steps",
                          [this] { return RunTrace(trace_, context_); });
    trace->add_option("job", trace_.job, "job id")->type_name("JOB")->required();
    trace->add_option("--steps", trace_.steps, "how many steps back; 0: all that there are")
        ->check(CLI::Range(uint32_t{0}, kMostTracedSteps))
        ->capture_default_str();
    trace
        ->add_option("--file", trace_.file,
                     "Chrome trace JSON, opens in ui.perfetto.dev; - for standard output")
        ->type_name("FILE")
        ->capture_default_str();
    // Hides the shared option of this name, which once named the file and still may.
    trace
        ->add_option_function<std::string>(
            "-o,--output",
            [this](const std::string& given) {
              const std::optional<OutputFormat> format = ParseOutputFormat(given);
              if (format.has_value()) context_.output = *format;
              if (!format.has_value()) trace_.file = given;
            },
            "table, json or ndjson: how to tell what was written; anything else is --file")
        ->type_name("{table,json,ndjson}")
        ->default_str("table");

    CLI::App* logs = Add("logs", "Read the logs of a job's coordinator and stages", [this] {
      logs_.json = log_format_ == "json" || context_.output != OutputFormat::kTable;
      return RunLogs(logs_, context_);
    });
    logs->add_option("job", logs_.job, "job id")->type_name("JOB")->required();
    logs->add_flag("-f,--follow", logs_.follow, "go on until the job ends");
    logs->add_option("--stage", logs_.stage, "only this stage of the pipeline, from 0")
        ->check(CLI::Range(int32_t{0}, static_cast<int32_t>(kMostStages)));
    logs->add_option("--tail", logs_.tail, "only the last lines; default: all")
        ->check(CLI::Range(uint32_t{1}, kMostLogLines));
    logs->add_option("--format", log_format_, "text, or json: one object a line")
        ->check(CLI::IsMember({"text", "json"}))
        ->capture_default_str();
  }

  void AddCheckpointCommands() {
    CLI::App* checkpoints = app_.add_subcommand("checkpoints", "List or verify checkpoints");
    checkpoints->require_subcommand(1);
    const auto add = [this, checkpoints](const std::string& name, const std::string& description,
                                         bool verify) {
      CLI::App* command = checkpoints->add_subcommand(name, description);
      command->add_option("job", checkpoints_.job, "job id")->type_name("JOB")->required();
      command->callback([this, verify] {
        checkpoints_.verify = verify;
        run_ = [this] { return RunCheckpoints(checkpoints_, context_); };
      });
    };
    add("list", "List a job's checkpoints", false);
    add("verify", "Also check every size and digest", true);

    CLI::App* exporting = Add("export", "Write a checkpoint's weights as one safetensors file",
                              [this] { return RunExport(export_, context_); });
    exporting
        ->add_option("job", export_.job,
                     "job id; with --names also a file or folder, as `generate` takes them")
        ->type_name("JOB|PATH")
        ->required();
    exporting->add_option("--step", export_.step, "default: the newest checkpoint")
        ->check(CLI::NonNegativeNumber);
    CLI::Option* average =
        exporting->add_flag("--average", export_.average,
                            "the averages of the weights (training.average) in their place");
    CLI::Option* names =
        exporting
            ->add_option("--names", export_.names,
                         "also write the weights in these names and layouts: torchvision or timm")
            ->type_name("{torchvision,timm}");
    CLI::Option* to = exporting->add_option("--to", export_.to, "the file for --names")
                          ->type_name("FILE")
                          ->needs(names);
    names->needs(to)->excludes(average);
    exporting->add_option("--job-file", export_.job_file, "with --names, the job of a checkpoint")
        ->type_name("FILE")
        ->needs(names);
  }

  void AddServerCommands() {
    Add("stages", "List the stage servers", [this] { return RunStages(context_); });
    CLI::App* health = Add("health", "Ask a server whether it serves", [this] {
      if (!health_address_.empty()) context_.client.address = health_address_;
      return RunHealth(context_);
    });
    health->add_option("server", health_address_, "host:port; default: the coordinator");
  }

  static void AddWeightOptions(CLI::App* command, const std::string& name, WeightOptions* weights) {
    command
        ->add_option(name, weights->source,
                     "model.safetensors, or a folder: of exported weights, of a `local` run "
                     "(--state-dir), of a "
                     "checkpoint (with --job-file); or the id of a cluster's job")
        ->type_name("JOB|PATH")
        ->required();
    command->add_option("--step", weights->step, "of a cluster's job; default: the newest")
        ->check(CLI::NonNegativeNumber);
    command
        ->add_option("--job-file", weights->job_file,
                     "the job that a checkpoint was trained by; a checkpoint has only numbers")
        ->type_name("FILE");
    command->add_option("--threads", weights->threads, "default: all cores")
        ->check(CLI::Range(int64_t{1}, kMostStages));
  }

  void AddPictureCommands() {
    CLI::App* classify = Add("classify", "Tell what pictures show, with trained weights",
                             [this] { return RunClassify(classify_, context_); });
    AddWeightOptions(classify, "--weights", &classify_.weights);
    classify->add_option("--top", classify_.top, "so many classes of each picture, at most")
        ->check(CLI::Range(int64_t{1}, int64_t{1} << 30))
        ->capture_default_str();
    classify
        ->add_option("pictures", classify_.pictures,
                     "JPEG, PNG, TIFF and WebP files; of a folder all of them below it")
        ->type_name("PATH")
        ->required();

    CLI::App* segment = Add("segment", "Write a mask for each picture, with trained weights",
                            [this] { return RunSegment(segment_, context_); });
    AddWeightOptions(segment, "--weights", &segment_.weights);
    segment->add_option("--out", segment_.out, "the folder of the masks, PNG files with a palette")
        ->type_name("DIR")
        ->required();
    segment
        ->add_option("pictures", segment_.pictures,
                     "JPEG, PNG, TIFF and WebP files; of a folder all of them below it")
        ->type_name("PATH")
        ->required();
  }

  void AddOtherCommands() {
    CLI::App* generate = Add("generate", "Write text with trained weights",
                             [this] { return RunGenerate(generate_, context_); });
    AddWeightOptions(generate, "weights,--weights", &generate_.weights);
    generate->add_option("--prompt", generate_.prompt, "text to go on from");
    generate->add_option("--tokens", generate_.tokens, "how many to write")
        ->check(CLI::Range(int64_t{1}, int64_t{1} << 30))
        ->capture_default_str();
    generate->add_option("--temperature", generate_.temperature, "0: always the likeliest")
        ->check(CLI::Range(0.0, 100.0))
        ->capture_default_str();
    generate->add_option("--seed", generate_.seed, "of the random choice")->capture_default_str();

    Add("version", "Print the version", [this] { return RunVersion(context_); });
    CLI::App* completion = Add("completion", "Print a completion script", [this] {
      context_.console->Print(CompletionScript(shell_));
      return static_cast<int>(kExitSuccess);
    });
    CLI::App* complete = Add("__complete", "Answer a completion script",
                             [this] { return RunComplete(app_, line_, context_); });
    complete->group("");  // hidden
    complete->add_option("line", line_, "behind --, a command line up to the word to complete");
    completion->add_option("shell", shell_, "whose script")
        ->required()
        ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  }

  CLI::App app_;
  CommandContext context_;
  std::function<int()> run_;
  CLI::Option* address_ = nullptr;
  LocalOptions local_;
  SubmitOptions submit_;
  ResumeOptions resume_;
  PlanOptions plan_;
  ValidateOptions validate_;
  GenerateOptions generate_;
  ClassifyOptions classify_;
  SegmentOptions segment_;
  CheckpointsOptions checkpoints_;
  ExportOptions export_;
  TraceOptions trace_;
  LogsOptions logs_;
  std::string log_format_ = "text";
  std::string job_, shell_, health_address_, ui_folder_;
  std::vector<std::string> line_;  // to complete
};

}  // namespace

int RunCommandLine(int argc, const char* const* argv, Console* console, StopSignal* stop) {
  return CommandTree(console, stop).Run(argc, argv);
}

}  // namespace stagecoach
