// LocalRun: a job on a cluster of processes of this machine. It runs from the job's folder to its
// end, or to the checkpoint that Ctrl-C makes. `local` and `resume --state-dir` share it;
// `translate` and `generate --local-stages` follow their job themselves.
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

// For a job that is submitted to a coordinator of this machine that has just been started.
inline constexpr double kStartPatienceSeconds = 30;

struct LocalRunOptions {
  std::string command;                       // "ui", for others who want the folder
  std::string state_folder;                  // exists
  std::vector<std::string> shown_runs = {};  // of LocalClusterOptions
  bool quiet = false;                        // no notes of addresses and stages
};

class LocalRun {
 public:
  // Starts the coordinator and connects to it.
  static absl::StatusOr<std::unique_ptr<LocalRun>> Start(const LocalRunOptions& options,
                                                         const LocalClusterFlags& flags,
                                                         CommandContext& context);
  // `status`, or the stop's own reason if a stop was requested.
  static absl::Status Reason(const absl::Status& status, const CommandContext& context);

  JobClient& client() { return *client_; }  // until Follow or Stop
  const LocalCluster& cluster() const { return *cluster_; }

  // Starts as many stages as the job says. Call it once, and only if you do not call Follow, which
  // starts them itself.
  void StartStages(const v1::JobSpec& spec);
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
  LocalRun(const LocalRunOptions& options, LocalClusterFlags flags, CommandContext& context)
      : state_folder_(options.state_folder),
        quiet_(options.quiet),
        flags_(std::move(flags)),
        context_(context) {}
  void Note(const std::string& line) {
    if (!quiet_) context_.console->Note(line);
  }
  void SaveAndSayHowToGoOn(const v1::Job& job);
  void Disconnect();

  const std::string state_folder_;
  const bool quiet_;
  const LocalClusterFlags flags_;
  CommandContext& context_;
  std::unique_ptr<LocalCluster> cluster_;
  std::unique_ptr<JobClient> client_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_COMMANDS_LOCAL_LOCAL_RUN_H_
