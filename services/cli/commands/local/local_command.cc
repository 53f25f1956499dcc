#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/errors/status.h"
#include "services/cli/client/follow.h"
#include "services/cli/commands/commands.h"
#include "services/cli/commands/follow_command.h"
#include "services/cli/commands/local/go_on.h"
#include "services/cli/commands/local/local_run.h"
#include "services/cli/spec/data_here.h"

namespace stagecoach {
namespace {

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

std::string DeviceList(const LocalOptions& options) {
  return absl::StrJoin(options.cluster.devices, ",");
}

// The file must hold as it stands; then the command line's number of stages takes the place of its
// own.
absl::StatusOr<SpecFile> ReadSpecForLocal(const LocalOptions& options) {
  ASSIGN_OR_RETURN(ValidSpecFile spec_file, ReadValidSpec(options.file));
  RETURN_IF_ERROR(CheckAllIsHere(spec_file));
  RETURN_IF_ERROR(CheckDataHere(spec_file, StagesAre::kHere));
  v1::Pipeline& pipeline = *spec_file.spec.mutable_pipeline();
  if (options.stages == 0 && pipeline.stages() == 0) {
    pipeline.set_stages(std::max<int64_t>(kAutoStages, pipeline.min_stages()));
  }
  if (options.stages > 0) {
    pipeline.set_stages(options.stages);
    spec_file.job.pipeline.stages = options.stages;
    const absl::Status valid = ValidateAgain(spec_file);
    if (!valid.ok()) return Annotate(valid, absl::StrCat("with --stages ", options.stages));
  }
  const int64_t devices = static_cast<int64_t>(options.cluster.devices.size());
  if (devices > pipeline.stages()) {
    return absl::InvalidArgumentError(absl::StrCat("--device ", DeviceList(options), ": ", devices,
                                                   " devices for ", pipeline.stages(),
                                                   " stages; name at most one a stage"));
  }
  // Whoever names devices one by one wants them together, in the order that they are named in.
  if (std::set<std::string>(options.cluster.devices.begin(), options.cluster.devices.end()).size() >
      1) {
    pipeline.set_mixed_devices(true);
  }
  return spec_file;
}

// Told before the training, not behind it.
absl::Status CheckTraceFile(const std::string& file) {
  if (file.empty() || file == "-") return absl::OkStatus();
  const auto refused = [&file](const std::string& why) {
    return absl::InvalidArgumentError(absl::StrCat("--trace ", file, ": ", why));
  };
  std::error_code error;
  if (std::filesystem::is_directory(file, error)) return refused("is a folder; name a file in it");
  std::filesystem::path folder = std::filesystem::path(file).parent_path();
  if (folder.empty()) folder = ".";
  if (!std::filesystem::is_directory(folder, error)) {
    return refused("its folder is not there; make it, or name another file");
  }
  if (access(folder.c_str(), W_OK) != 0) {
    return refused(absl::StrCat("its folder cannot be written to: ", strerror(errno)));
  }
  return absl::OkStatus();
}

}  // namespace

int RunLocal(const LocalOptions& options, CommandContext& context) {
  Console& console = *context.console;
  const absl::StatusOr<SpecFile> spec_file = ReadSpecForLocal(options);
  if (!spec_file.ok()) return console.Fail(spec_file.status());
  const v1::JobSpec& spec = spec_file->spec;
  const absl::StatusOr<std::string> state_folder = MakeStateFolder(options.state_dir, spec.name());
  if (!state_folder.ok()) return console.Fail(state_folder.status());
  // Behind that: the state folder is a good place for it.
  if (const absl::Status trace = CheckTraceFile(options.trace_file); !trace.ok()) {
    return console.Fail(trace);
  }

  const absl::StatusOr<std::unique_ptr<LocalRun>> run = LocalRun::Start(
      {.command = "local", .state_folder = *state_folder}, options.cluster, context);
  if (!run.ok()) return console.Fail(run.status());
  const std::string id = options.id.empty() ? spec.name() : options.id;
  const std::string line = (*run)->ResumeLine(id);
  const absl::StatusOr<StartedJob> started = StartOrGoOn(
      (*run)->client(), id, spec, kStartPatienceSeconds,
      absl::StrCat("to run this spec: choose another --id or --state-dir; to go on with "
                   "the job there:\n",
                   line, " [--stages K] [--steps N]"),
      context);
  if (!started.ok()) return console.Fail(started.status());
  (*run)->NoteHeldJobs(id);
  if (IsTerminal(started->job.state())) {
    return ReportEnded((*run)->client(), started->job, "choose another --id or --state-dir", line,
                       context);
  }
  return (*run)->Follow(*started, options.trace_file);
}

}  // namespace stagecoach
