// stagecoach-coordinator: takes jobs, plans them, drives the stages.
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "services/common/observe/log.h"
#include "services/common/process/process.h"
#include "services/coordinator/coordinator_server.h"

int main(int argc, char** argv) {
  using namespace stagecoach;
  PrepareProcess();
  CLI::App app{"Coordinator of Stagecoach: takes jobs and drives the stage servers."};
  app.set_version_flag("--version", STAGECOACH_VERSION);
  CoordinatorFlags flags;
  AddServerFlags(app, &flags.server);
  app.add_option("--state-dir", flags.state_dir, "journal and exports; one coordinator per folder")
      ->capture_default_str();
  app.add_option(
      "--checkpoint-dir", flags.checkpoint_dir,
      "checkpoints, shared with the stages under the same path; default: below --state-dir");
  app.add_option("--lease-secs", flags.lease_seconds, "a stage that is silent for so long is lost")
      ->check(CLI::Range(0.3, 3600.0))
      ->capture_default_str();
  app.add_flag("--checkpoint-on-exit", flags.checkpoint_on_exit,
               "on SIGTERM every running job writes a checkpoint after the step at hand");
  app.add_flag("--hold-jobs", flags.hold_jobs,
               "unfinished jobs are not taken up again, but wait for `stagecoach resume`");
  app.add_option("--http-host", flags.http_hosts,
                 "a name by which browsers reach a loopback --http, besides localhost; repeatable");
  CLI11_PARSE(app, argc, argv);
  if (flags.server.die_with_parent) DieWithParent();
  absl::Status status = SetUpLogging("coordinator", flags.server.log_format, flags.server.verbose);
  CoordinatorServer server(flags);
  if (status.ok()) status = server.Start();
  if (!status.ok()) {
    std::fprintf(stderr, "stagecoach-coordinator: %s\n", std::string(status.message()).c_str());
    return ExitCodeOfFailedStart(status);
  }
  spdlog::info("signal {}: shutting down", WaitForTermination());
  ExitWatchdog watchdog(flags.server.exit_timeout_seconds);
  server.Shutdown();
  return 0;
}
