// stagecoach-stage: hosts one cell on this machine's device.
#include <signal.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <optional>

#include "services/common/flags/exit_code.h"
#include "services/common/flags/flag_parser.h"
#include "services/common/observe/log.h"
#include "services/common/process/last_death.h"
#include "services/common/process/process.h"
#include "services/stage/stage_server.h"

namespace stagecoach {
namespace {

// What the stage reads and keeps on its machine.
void AddDataFlags(FlagParser& parser, StageFlags* flags) {
  parser.Texts("--data-root", &flags->data_roots,
               "a folder, or a file, that jobs may read; repeatable; default: on loopback every "
               "file, else none");
  parser.Switch("--data-follow-links", &flags->data_follow_links,
                "follow links beneath a --data-root that lead to a --data-root");
  parser.Text("--cache-dir", &flags->cache_dir,
              "keeps data sets of the cluster, tokens that tokenizers made of texts, and shards "
              "(--keep-local); may be emptied at any time; default: stagecoach-cache-<user id> in "
              "the system's folder for temporary files",
              "STAGECOACH_CACHE_DIR");
  parser.Number("--cache-bytes", &flags->cache_bytes,
                "disk space for data sets of the cluster, of all stages with this --cache-dir; 0: "
                "half of what is free and what they take at the first use",
                0, std::numeric_limits<int64_t>::max());
  parser.Number(
      "--keep-local", &flags->keep_local,
      "this stage's shards of so many checkpoints of each job stay in --cache-dir too, "
      "beside the one being written; a reload reads them there, and the store's if they differ; 0: "
      "none",
      0, 1000);
}

}  // namespace
}  // namespace stagecoach

int main(int argc, char** argv) {
  using namespace stagecoach;
  PrepareProcess();
  static CurrentWork work;  // a handler reads it until the last moment
  HandleFatalSignals(&work);
  FlagParser parser("Stage server of Stagecoach: hosts consecutive layers of a network.");
  StageFlags flags;
  AddServerFlags(parser, &flags.server);
  parser.Text("--coordinator", &flags.coordinator, "gRPC address of the coordinator",
              "STAGECOACH_ADDRESS");
  parser.Text("--name", &flags.name, "unique name; default: <host name>-<port>",
              "STAGECOACH_STAGE_NAME");
  parser.Text(
      "--state-dir", &flags.state_dir,
      "keeps what a restart is known by and which signal ended the process before, one process "
      "at a time; default: nothing, this machine and --listen are what it is known by",
      "STAGECOACH_STAGE_STATE_DIR");
  parser.Text("--advertise", &flags.advertise,
              "address that coordinator and neighbours dial; default: the listening one",
              "STAGECOACH_ADVERTISE");
  parser.Text("--device", &flags.device, "cpu, cuda[:N], reference or simulated[:GFLOP/s[:GB/s]]");
  parser.Text(
      "--matmul-table", &flags.matmul_table,
      "matrix algorithms that a card takes, a file of gpu-operations, one for all stages of "
      "a job; default: the library's own choice");
  parser.Switch("--cuda-graphs", &flags.cuda_graphs,
                "a card launches the calls of a micro-batch as one; not measured on a card yet",
                "STAGECOACH_CUDA_GRAPHS");
  AddDataFlags(parser, &flags);
  parser.Number("--threads", &flags.threads, "compute threads; 0: the cores this process may use",
                0, 1024);
  parser.Number("--memory-limit-bytes", &flags.memory_limit_bytes, "tensor memory; 0: no limit", 0,
                std::numeric_limits<int64_t>::max());
  parser.Number("--progress-timeout-secs", &flags.progress_timeout_seconds,
                "a step in which no stage of the job has done an operation for so long has failed",
                1.0, 86400.0, "STAGECOACH_PROGRESS_TIMEOUT_SECS");
  if (const std::optional<int> code = parser.Parse(argc, argv)) return *code;
  if (flags.server.die_with_parent) DieWithParent();
  absl::Status status = SetUpLogging("stage", flags.server.log_format, flags.server.verbose);
  // The signal is blocked in every thread: it waits until main asks for it.
  StageServer server(flags, {.on_fault = [] { kill(getpid(), SIGTERM); }});
  if (status.ok()) status = server.Start();
  if (!status.ok()) {
    std::fprintf(stderr, "stagecoach-stage: %s\n", std::string(status.message()).c_str());
    return ExitCodeOfFailedStart(status);
  }
  const int signal_number = WaitForTermination();
  const absl::Status fault = server.fault();
  if (fault.ok()) spdlog::info("signal {}: shutting down", signal_number);
  // Freeing what a lost card held may take its driver long.
  ExitWatchdog watchdog(fault.ok() ? flags.server.exit_timeout_seconds
                                   : std::min(flags.server.exit_timeout_seconds, 5.0));
  server.Shutdown();
  if (fault.ok()) return server.unreachable() ? kUnreachableExitCode : 0;
  std::fprintf(stderr, "stagecoach-stage: %s\n", std::string(fault.message()).c_str());
  return kDeviceLostExitCode;
}
