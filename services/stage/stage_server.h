// StageServer: the assembled stagecoach-stage program: back end, runtime, link connector, gRPC and
// HTTP servers, lease.
// Ownership: owns all of them; parts are destroyed in reverse order of their start.
// Errors:    Start: INVALID_ARGUMENT or FAILED_PRECONDITION naming the flag, UNAVAILABLE for a
//            taken port. Fault: if this process loses its device, the running step fails with the
//            reason. Then the program ends with kDeviceLostExitCode. Only a new process can use the
//            card again, and its supervisor starts one.
#ifndef STAGECOACH_SERVICES_STAGE_STAGE_SERVER_H_
#define STAGECOACH_SERVICES_STAGE_STAGE_SERVER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/common/process/server_flags.h"
#include "stage/backends/backend.h"

namespace stagecoach {

struct StageFlags {
  ServerFlags server = {.listen = "127.0.0.1:8101", .http = "127.0.0.1:8100"};
  std::string coordinator = "127.0.0.1:8001";
  std::string name;  // default: <host name>-<port>
  // Folder of the stage's identity (stage_identity.h) and of its process's death (last_death.h).
  // Empty: the identity follows from the place.
  std::string state_dir;
  std::string advertise;  // default: the listening address
  std::string device = "cpu";
  // File of matrix algorithms (stage/backends/cuda/matmul/matmul_table.h), for cards only; empty:
  // the library's choice.
  std::string matmul_table;
  // One launch for the calls of a micro-batch (stage/backends/device/call_queue.h), for cards only.
  bool cuda_graphs = false;
  // Folders and files that jobs may read (job_files.h), and whether links beneath them are
  // followed.
  std::vector<std::string> data_roots;
  bool data_follow_links = false;
  // Of data sets and of what readers make of data; empty: one below the temporary folder.
  std::string cache_dir;
  int64_t cache_bytes = 0;  // of data sets; 0: half of what the disk has free
  int64_t keep_local = 0;   // checkpoints of each job whose shards stay in cache_dir as well
  int threads = 0;          // 0: the cores this process may use
  int64_t memory_limit_bytes = 0;
  double progress_timeout_seconds = 30;  // without an operation done by any stage of the job
};

class StageServer {
 public:
  struct Hooks {
    std::function<absl::StatusOr<std::unique_ptr<Backend>>()> make_backend;  // empty: --device
    std::function<void()> on_fault;  // fault() is not ok any more, or unreachable() is true; any
                                     // thread, must not block
  };
  explicit StageServer(const StageFlags& flags, Hooks hooks = {});
  ~StageServer();
  absl::Status Start();
  absl::Status fault() const;  // of the device; any thread
  bool unreachable() const;    // its gRPC port does not answer even this process; any thread
  // From now on the stage is not ready and takes no new work. The running step ends, or is
  // abandoned by a deadline that leaves exit_timeout_seconds for the rest. Then the lease, the
  // links and the servers end.
  void Shutdown();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_STAGE_STAGE_SERVER_H_
