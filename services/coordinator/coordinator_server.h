// CoordinatorServer: the assembled stagecoach-coordinator program.
// Ownership: owns all parts; they are destroyed in reverse order of their start.
// Errors:    Start: FAILED_PRECONDITION if another coordinator holds the state folder, UNAVAILABLE
//            for a taken port, INVALID_ARGUMENT naming a flag.
#ifndef STAGECOACH_SERVICES_COORDINATOR_COORDINATOR_SERVER_H_
#define STAGECOACH_SERVICES_COORDINATOR_COORDINATOR_SERVER_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "services/common/process/server_flags.h"
#include "services/coordinator/watch/retention.h"

namespace stagecoach {

// How checkpoints reach the stages: over gRPC, because they see checkpoint_dir too, or, as
// s3://BUCKET/PREFIX, by URLs of a bucket.
inline constexpr char kEmbeddedStore[] = "embedded", kFolderStore[] = "folder";

struct CoordinatorFlags {
  ServerFlags server = {.listen = "127.0.0.1:8001", .http = "127.0.0.1:8000"};
  std::string state_dir = "stagecoach-state";
  std::string checkpoint_dir;  // default: <state_dir>/checkpoints
  std::string store = kEmbeddedStore;
  std::string s3_endpoint;                // of another server than AWS; empty: by the environment
  std::vector<std::string> data_buckets;  // "s3://BUCKET/PREFIX", whose objects jobs may read
  double lease_seconds = 1.5;
  bool checkpoint_on_exit = false;
  bool hold_jobs = false;
  std::vector<std::string>
      show_runs;  // folders of runs whose jobs are only shown, in a new --state-dir
  int64_t keep_ended_jobs = 1000;
  double keep_ended_days = 90;          // 0: for ever
  RetentionLimits retention;            // of ended jobs' files
  double data_keep_days = 30;           // data sets without a name that nobody uses; 0: for ever
  std::vector<std::string> http_hosts;  // names besides localhost in browsers' addresses
  std::string token_file;               // callers without a certificate; empty: none
};

class CoordinatorServer {
 public:
  // `on_fault`: called when fault() stops being ok or unreachable() gets true; any thread, must not
  // block.
  explicit CoordinatorServer(const CoordinatorFlags& flags, std::function<void()> on_fault = {});
  ~CoordinatorServer();
  absl::Status Start();
  absl::Status fault() const;  // why it cannot go on: it lost its state folder; any thread
  bool unreachable() const;    // the gRPC port does not answer, not even this process; any thread
  void Shutdown();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COORDINATOR_COORDINATOR_SERVER_H_
