#include "services/cli/local/local_cluster.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/device_name.h"
#include "base/errors/status.h"
#include "services/common/process/last_death.h"

namespace stagecoach {
namespace {

constexpr char kHost[] = "127.0.0.1";
constexpr double kStartSeconds = 60;
// A step may be long, and whoever does not want to wait for it says so. The coordinator takes half
// of this for the step at hand.
constexpr int kExitTimeoutSeconds = 7 * 86400;

std::string StageName(int stage) { return absl::StrCat("stage-", stage); }

std::string AddressOf(int port) { return absl::StrCat(kHost, ":", port); }

std::vector<std::string> ServerArguments(const std::string& program, const std::string& port_file,
                                         const ProcessPorts& ports) {
  // The environment's TLS is for other clusters.
  return {program,
          "--listen",
          AddressOf(ports.grpc),
          "--http",
          AddressOf(ports.http),
          "--port-file",
          port_file,
          "--die-with-parent",
          "--grpc-use-ssl=false"};
}

ProcessSpec MakeSpec(const LocalClusterOptions& options, const std::string& name) {
  ProcessSpec spec;
  spec.name = name;
  spec.log_file = absl::StrCat(options.state_folder, "/logs/", name, ".log");
  spec.port_file = absl::StrCat(options.state_folder, "/ports/", name);
  return spec;
}

ProcessSpec CoordinatorSpec(const LocalClusterOptions& options) {
  ProcessSpec spec = MakeSpec(options, "coordinator");
  // The same ports again after a restart: stages and the client know it by them.
  spec.arguments = [options, port_file = spec.port_file](const ProcessPorts& last) {
    std::vector<std::string> arguments =
        ServerArguments(options.program_folder + "/stagecoach-coordinator", port_file, last);
    arguments.insert(arguments.end(), {"--state-dir", options.state_folder, "--store", "folder",
                                       "--checkpoint-on-exit", "--exit-timeout-secs",
                                       absl::StrCat(kExitTimeoutSeconds)});
    for (const std::string& run : options.shown_runs) {
      if (last.grpc == 0) arguments.insert(arguments.end(), {"--show-run", run});
    }
    // One that died takes its job up again.
    if (last.grpc == 0 || !options.shown_runs.empty()) arguments.push_back("--hold-jobs");
    return arguments;
  };
  return spec;
}

ProcessSpec StageSpec(const LocalClusterOptions& options, int stage, int stages, int threads,
                      const std::vector<std::string>& data_roots, const std::string& coordinator) {
  const std::string name = StageName(stage);
  const std::string folder = absl::StrCat(options.state_folder, "/stages/", name);
  ProcessSpec spec = MakeSpec(options, name);
  spec.death = [folder](int signal_number) {
    const std::optional<StageDeath> death = ReadDeath(folder);
    const char* const signal_name = FatalSignalName(signal_number);
    const bool same = death && signal_name != nullptr && death->signal == signal_name;
    return same ? DeathText(*death) : std::string();
  };
  const std::string device = DeviceOfStage(stage, stages, options.devices);
  spec.arguments = [options, name, folder, device, threads, data_roots, coordinator,
                    port_file = spec.port_file](const ProcessPorts&) {
    std::vector<std::string> arguments =
        ServerArguments(options.program_folder + "/stagecoach-stage", port_file, ProcessPorts{});
    arguments.insert(arguments.end(),
                     {"--name", name, "--state-dir", folder, "--coordinator", coordinator,
                      "--device", device, "--threads", absl::StrCat(threads),
                      "--memory-limit-bytes", absl::StrCat(options.memory_per_stage)});
    for (const std::string& root : data_roots) {
      arguments.insert(arguments.end(), {"--data-root", root});
    }
    // They are the user's own.
    if (!data_roots.empty()) arguments.push_back("--data-follow-links");
    return arguments;
  };
  return spec;
}

SupervisorOptions MakeSupervisorOptions(const LocalClusterOptions& options) {
  SupervisorOptions result;
  result.state_file = options.state_folder + "/processes.json";
  result.host = kHost;
  // Stages share the cores: threads that spin while they wait would take them from each other.
  result.environment = {"OMP_WAIT_POLICY=passive"};
  result.on_failure = options.on_failure;
  result.on_note = options.on_note;
  return result;
}

}  // namespace

absl::StatusOr<std::unique_ptr<LocalCluster>> LocalCluster::Start(
    const LocalClusterOptions& options) {
  for (const char* folder : {"logs", "ports"}) {
    std::error_code error;
    std::filesystem::create_directories(absl::StrCat(options.state_folder, "/", folder), error);
    if (error) {
      return absl::FailedPreconditionError(
          absl::StrCat("state folder ", options.state_folder, "/", folder, ": ", error.message()));
    }
  }
  std::unique_ptr<LocalCluster> cluster(new LocalCluster(options));
  RETURN_IF_ERROR(cluster->lock_.Take(options.state_folder + "/local.lock", options.holder));
  cluster->supervisor_ = std::make_unique<Supervisor>(MakeSupervisorOptions(options));
  cluster->supervisor_->Start(CoordinatorSpec(options));
  ASSIGN_OR_RETURN(const ProcessPorts ports,
                   cluster->supervisor_->WaitForPorts("coordinator", kStartSeconds));
  cluster->address_ = AddressOf(ports.grpc);
  cluster->http_address_ = AddressOf(ports.http);
  return cluster;
}

void LocalCluster::StartStages(int stages, int threads_per_stage,
                               const std::vector<std::string>& data_roots) {
  for (int stage = 0; stage < stages; ++stage) {
    supervisor_->Start(StageSpec(options_, stage, stages, threads_per_stage, data_roots, address_));
  }
}

bool LocalCluster::SaveAndEndCoordinator(const Supervisor::Hurry& hurry) {
  return supervisor_->End("coordinator", kExitTimeoutSeconds, hurry);
}

std::string CheckpointFolder(const std::string& state_folder) {
  return absl::StrCat(state_folder, "/checkpoints");
}

LocalCluster::FolderLock::~FolderLock() {
  if (descriptor_ < 0) return;
  // Whoever takes it next is not told by our name, until it has written its own.
  if (held_) std::ignore = ftruncate(descriptor_, 0);
  close(descriptor_);
}

absl::Status LocalCluster::FolderLock::Take(const std::string& path, const std::string& holder) {
  descriptor_ = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (descriptor_ < 0) return absl::ErrnoToStatus(errno, path);
  if (flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
    std::string who;
    std::getline(std::ifstream(path), who);  // empty: it has only just taken it
    return absl::FailedPreconditionError(
        absl::StrCat(path, " is held by ", who.empty() ? "another `stagecoach`" : who,
                     "; wait for its end or choose another folder"));
  }
  held_ = true;
  // Written for people only: a full disk is no reason not to hold the folder.
  if (ftruncate(descriptor_, 0) == 0) {
    dprintf(descriptor_, "`%s`, process %d\n", holder.c_str(), static_cast<int>(getpid()));
  }
  return absl::OkStatus();
}

int DefaultThreadsPerStage(int stages, const std::vector<std::string>& devices) {
  // The C++ library asks for this process' CPU affinity, not for the machine's cores.
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  int computing = 0;
  for (int place = 0; place < stages; ++place) {
    if (!IsCudaDevice(devices[place % devices.size()])) ++computing;
  }
  return std::max(1, cores / std::max(1, computing));
}

std::string DeviceOfStage(int stage, int stages, const std::vector<std::string>& devices) {
  const std::string name = StageName(stage);
  size_t place = 0;
  for (int other = 0; other < stages; ++other) place += StageName(other) < name ? 1 : 0;
  return devices[place % devices.size()];
}

}  // namespace stagecoach
