// stagecoach-coordinator: takes jobs, plans them, drives the stages.
#include <signal.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <limits>
#include <optional>

#include "services/common/flags/flag_parser.h"
#include "services/common/observe/log.h"
#include "services/common/process/process.h"
#include "services/coordinator/coordinator_server.h"

namespace stagecoach {
namespace {

void AddStoreFlags(FlagParser& parser, CoordinatorFlags* flags) {
  parser.Text("--store", &flags->store,
              "how checkpoints reach the stages; embedded: over gRPC, kept here; folder: they see "
              "--checkpoint-dir under the same path, on this machine or a shared file system; "
              "s3://BUCKET/PREFIX: in a bucket, data sets too, with credentials of this machine "
              "alone");
  parser.Text(
      "--s3-endpoint", &flags->s3_endpoint,
      "http(s)://HOST:PORT of a bucket's server that is not AWS; default: AWS_ENDPOINT_URL");
  parser.Texts("--data-buckets", &flags->data_buckets,
               "s3://BUCKET/PREFIX: jobs may name objects beneath it, of the server and with the "
               "credentials of a bucket; repeatable, or with ',' between");
  parser.Text("--checkpoint-dir", &flags->checkpoint_dir,
              "checkpoints; default: below --state-dir");
}

}  // namespace
}  // namespace stagecoach

int main(int argc, char** argv) {
  using namespace stagecoach;
  PrepareProcess();
  FlagParser parser("Coordinator of Stagecoach: takes jobs and drives the stage servers.");
  CoordinatorFlags flags;
  AddServerFlags(parser, &flags.server);
  parser.Path("--state-dir", &flags.state_dir,
              "journal, records, exports, and checkpoints if not said otherwise; one coordinator "
              "per folder");
  AddStoreFlags(parser, &flags);
  parser.Number("--lease-secs", &flags.lease_seconds, "a stage that is silent for so long is lost",
                0.3, 3600.0);
  parser.Switch("--checkpoint-on-exit", &flags.checkpoint_on_exit,
                "on SIGTERM every running job writes a checkpoint after the step at hand");
  parser.Switch("--hold-jobs", &flags.hold_jobs,
                "unfinished jobs are not taken up again, but wait for `stagecoach resume`");
  parser.Texts("--show-run", &flags.show_runs,
               "a state folder: its jobs are copied into the new --state-dir, to be looked at and "
               "nothing else; repeatable");
  parser.Number("--keep-ended-jobs", &flags.keep_ended_jobs,
                "ended jobs that the journal keeps, the newest; older ones are forgotten, their "
                "files stay",
                int64_t{1}, int64_t{1000000});
  parser.Number("--keep-ended-days", &flags.keep_ended_days,
                "an ended job is forgotten after so many days; 0: never for its age", 0.0, 36500.0);
  parser.Number("--remove-ended-days", &flags.retention.days,
                "an ended job is removed, with its checkpoints, exports and records, after so many "
                "days; 0: never for its age",
                0.0, 36500.0);
  parser.Number(
      "--remove-ended-bytes", &flags.retention.bytes,
      "those that ended first are removed likewise while the files of all ended jobs have "
      "more bytes than this; 0: never for their size",
      int64_t{0}, std::numeric_limits<int64_t>::max());
  parser.Number("--data-keep-days", &flags.data_keep_days,
                "a data set without a name is removed when no job has used it for so many days; 0: "
                "never",
                0.0, 36500.0);
  parser.Path("--token-file", &flags.token_file,
              "who may call without a certificate: lines \"NAME SHA256-HEX [operator]\" with the "
              "digests of tokens; needs TLS; rights 0600, read again when it changes");
  parser.Texts("--http-host", &flags.http_hosts,
               "a name by which browsers reach a loopback --http, besides localhost; repeatable");
  if (const std::optional<int> code = parser.Parse(argc, argv)) return *code;
  if (flags.server.die_with_parent) DieWithParent();
  absl::Status status = SetUpLogging("coordinator", flags.server.log_format, flags.server.verbose);
  // The signal is blocked in every thread: it waits until main asks for it.
  CoordinatorServer server(flags, [] { kill(getpid(), SIGTERM); });
  if (status.ok()) status = server.Start();
  if (!status.ok()) {
    std::fprintf(stderr, "stagecoach-coordinator: %s\n", std::string(status.message()).c_str());
    return ExitCodeOfFailedStart(status);
  }
  const int signal_number = WaitForTermination();
  if (server.fault().ok()) spdlog::info("signal {}: shutting down", signal_number);
  ExitWatchdog watchdog(flags.server.exit_timeout_seconds);
  server.Shutdown();
  const absl::Status fault = server.fault();
  if (fault.ok()) return server.unreachable() ? kUnreachableExitCode : 0;
  std::fprintf(stderr, "stagecoach-coordinator: %s\n", std::string(fault.message()).c_str());
  return kFolderLostExitCode;
}
