// LocalRun: a job on a cluster of processes of this machine. It runs from the job's folder to its
// end, or to the checkpoint that Ctrl-C makes. `local` and `resume --state-dir` share it.
// Ownership: owns the cluster; its processes are gone when the object is.
// Threads:   the main thread.
// Errors:    as LocalCluster.
#ifndef STAGECOACH_SERVICES_CLI_COMMANDS_LOCAL_LOCAL_RUN_H_
#define STAGECOACH_SERVICES_CLI_COMMANDS_LOCAL_LOCAL_RUN_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "services/cli/commands/commands.h"
#include "services/cli/commands/local/go_on.h"
#include "services/cli/local/local_cluster.h"

namespace stagecoach {

// Stages of a job with `stages: auto`, if the command line names no number.
inline constexpr int kAutoStages = 2;

class LocalRun {
 public:
  // Starts the coordinator in a folder that exists, and connects to it, for this command ("ui").
  // shown_runs: of LocalClusterOptions.
  static absl::StatusOr<std::unique_ptr<LocalRun>> Start(const std::string& command,
                                                         const std::string& state_folder,
                                                         const LocalClusterFlags& flags,
                                                         CommandContext& context,
                                                         std::vector<std::string> shown_runs = {});
  // `status`, or the stop's own reason if a stop was requested.
  static absl::Status Reason(const absl::Status& status, const CommandContext& context);

  JobClient& client() { return *client_; }  // until Follow or Stop
  const LocalCluster& cluster() const { return *cluster_; }

  // Starts the job's stages, follows it, and ends the cluster; returns the exit code. If
  // interrupted, it lets the job write a checkpoint first and prints the line that goes on with it.
  int Follow(const StartedJob& started, const std::string& trace_file);
  // Ends the cluster without a job.
  void Stop();

  // "  stagecoach resume JOB --state-dir FOLDER" with this run's other flags.
  std::string ResumeLine(const std::string& job) const;
  // Notes the other unfinished jobs of the folder, which do not go on by themselves.
  void NoteHeldJobs(const std::string& except);

 private:
  LocalRun(std::string state_folder, LocalClusterFlags flags, CommandContext& context)
      : state_folder_(std::move(state_folder)), flags_(std::move(flags)), context_(context) {}
  void SaveAndSayHowToGoOn(const v1::Job& job);
  void Disconnect();

  const std::string state_folder_;
  const LocalClusterFlags flags_;
  CommandContext& context_;
  std::unique_ptr<LocalCluster> cluster_;
  std::unique_ptr<JobClient> client_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_COMMANDS_LOCAL_LOCAL_RUN_H_
