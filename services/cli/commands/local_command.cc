#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "services/cli/commands/commands.h"
#include "services/cli/commands/follow_command.h"
#include "services/cli/commands/save_trace.h"
#include "services/cli/local/local_cluster.h"
#include "services/cli/local/spawn.h"
#include "services/cli/output/exit_code.h"
#include "services/cli/spec/data_here.h"

namespace stagecoach {
namespace {

constexpr double kSubmitPatienceSeconds = 30;
// Stages of a job that says `stages: auto`, where the command line does not say either.
constexpr int kAutoStages = 2;
constexpr uint32_t kTracedSteps = 5;

std::string NewStateFolder(const std::string& name) {
  const char* state_home = getenv("XDG_STATE_HOME");
  const std::string root = state_home != nullptr && *state_home != '\0'
                               ? absl::StrCat(state_home, "/stagecoach")
                               : "stagecoach-runs";
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  localtime_r(&now, &parts);
  char time[32];
  std::strftime(time, sizeof(time), "%Y%m%d-%H%M%S", &parts);
  const std::string folder = absl::StrCat(root, "/", name, "-", time);
  return std::filesystem::exists(folder) ? absl::StrCat(folder, "-", getpid()) : folder;
}

// The folder as an absolute path: the servers get it too.
absl::StatusOr<std::string> MakeStateFolder(const std::string& given, const std::string& name) {
  const std::filesystem::path folder =
      std::filesystem::absolute(given.empty() ? NewStateFolder(name) : given).lexically_normal();
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (!error) return folder.string();
  return absl::InvalidArgumentError(
      absl::StrCat("--state-dir ", folder.string(), ": ", error.message()));
}

std::string DeviceList(const LocalOptions& options) { return absl::StrJoin(options.devices, ","); }

// The file must hold as it stands; then the command line's number of stages takes the place of its
// own.
absl::StatusOr<SpecFile> ReadSpecForLocal(const LocalOptions& options) {
  ASSIGN_OR_RETURN(SpecFile spec_file, ReadValidSpec(options.file));
  RETURN_IF_ERROR(CheckDataHere(spec_file));
  v1::Pipeline& pipeline = *spec_file.spec.mutable_pipeline();
  if (options.stages == 0 && pipeline.stages() == 0) {
    pipeline.set_stages(std::max<int64_t>(kAutoStages, pipeline.min_stages()));
  }
  if (options.stages > 0) {
    pipeline.set_stages(options.stages);
    const absl::Status valid = ValidateSpecFile(spec_file).status();
    if (!valid.ok()) return Annotate(valid, absl::StrCat("with --stages ", options.stages));
  }
  const int64_t devices = static_cast<int64_t>(options.devices.size());
  if (devices > pipeline.stages()) {
    return absl::InvalidArgumentError(absl::StrCat("--device ", DeviceList(options), ": ", devices,
                                                   " devices for ", pipeline.stages(),
                                                   " stages; name at most one a stage"));
  }
  // Whoever names devices one by one wants them together, in the order that they are named in.
  if (std::set<std::string>(options.devices.begin(), options.devices.end()).size() > 1) {
    pipeline.set_mixed_devices(true);
  }
  return spec_file;
}

// The stages remember a job that ended; with the cluster that memory goes.
void TraceAtEnd(JobClient& client, const std::string& id, const std::string& file,
                CommandContext& context) {
  if (file.empty() || context.stop->requested()) return;
  const absl::Status saved =
      SaveTrace(client, id, /*steps=*/kTracedSteps, file, context.console).status();
  // The job's result is what the exit code tells.
  if (!saved.ok()) context.console->Note(absl::StrCat("stagecoach: no trace: ", saved.ToString()));
}

int RunOn(LocalCluster& cluster, const std::string& id, const v1::JobSpec& spec,
          const std::string& trace_file, CommandContext& context) {
  ClientOptions client_options = context.client;
  client_options.address = cluster.address();
  client_options.tls = TlsFlags{};  // loopback
  const absl::StatusOr<std::unique_ptr<JobClient>> client = context.connect(client_options);
  if (!client.ok()) return context.console->Fail(client.status());
  const absl::StatusOr<v1::Job> job =
      SubmitPatiently(**client, id, spec, kSubmitPatienceSeconds, context.stop);
  if (!job.ok()) return context.console->Fail(job.status());
  const int code = FollowAndReport(**client, *job, /*quiet=*/false, context);
  TraceAtEnd(**client, id, trace_file, context);
  return code;
}

}  // namespace

int RunLocal(const LocalOptions& options, CommandContext& context) {
  Console& console = *context.console;
  const absl::StatusOr<SpecFile> spec_file = ReadSpecForLocal(options);
  if (!spec_file.ok()) return console.Fail(spec_file.status());
  const v1::JobSpec& spec = spec_file->spec;
  const absl::StatusOr<std::string> state_folder = MakeStateFolder(options.state_dir, spec.name());
  if (!state_folder.ok()) return console.Fail(state_folder.status());

  LocalClusterOptions cluster_options;
  cluster_options.program_folder = ProgramFolder();
  cluster_options.state_folder = *state_folder;
  cluster_options.devices = options.devices;
  cluster_options.stages = static_cast<int>(spec.pipeline().stages());
  cluster_options.threads_per_stage =
      options.threads_per_stage > 0
          ? static_cast<int>(options.threads_per_stage)
          : DefaultThreadsPerStage(cluster_options.stages, options.devices);
  cluster_options.on_failure = [stop = context.stop](const absl::Status& why) {
    stop->Request(why);
  };
  cluster_options.on_note = [&console](const std::string& note) { console.Note(note); };

  console.Note(absl::StrCat("state    ", *state_folder));
  const absl::StatusOr<std::unique_ptr<LocalCluster>> cluster =
      LocalCluster::Start(cluster_options);
  if (!cluster.ok()) {
    return console.Fail(context.stop->requested() ? context.stop->reason() : cluster.status());
  }
  console.Note(absl::StrCat("stages   ", cluster_options.stages, " on device ", DeviceList(options),
                            ", threads each: ", cluster_options.threads_per_stage));
  console.Note(absl::StrCat("address  ", (*cluster)->address()));
  console.Note(absl::StrCat("page     http://", (*cluster)->http_address(), "/  (and /metrics)"));
  const std::string id = options.id.empty() ? spec.name() : options.id;
  const int code = RunOn(**cluster, id, spec, options.trace_file, context);
  (*cluster)->Stop();
  return code;
}

}  // namespace stagecoach
