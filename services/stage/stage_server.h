// StageServer: the stagecoach-stage program put together: back end, runtime, link connector, gRPC
// and HTTP servers, lease. Ownership: owns all of them; parts are destroyed in reverse order of
// their start. Errors:    Start: INVALID_ARGUMENT or FAILED_PRECONDITION naming the flag,
// UNAVAILABLE for a taken port.
#ifndef STAGECOACH_SERVICES_STAGE_STAGE_SERVER_H_
#define STAGECOACH_SERVICES_STAGE_STAGE_SERVER_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "services/common/server_flags.h"

namespace stagecoach {

struct StageFlags {
  ServerFlags server = {.listen = "127.0.0.1:8101", .http = "127.0.0.1:8100"};
  std::string coordinator = "127.0.0.1:8001";
  std::string name;       // default: stage-<index>, or the host's name and port
  std::string advertise;  // default: the listening address
  std::string device = "cpu";
  int threads = 0;  // 0: the cores this process may use
  int64_t memory_limit_bytes = 0;
  double progress_timeout_seconds = 30;
};

class StageServer {
 public:
  explicit StageServer(const StageFlags& flags);
  ~StageServer();
  absl::Status Start();
  // Not ready and no new work from now on; the running step ends or is abandoned by a deadline that
  // leaves exit_timeout_seconds time for the rest; then the lease, the links and the servers end.
  void Shutdown();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_STAGE_STAGE_SERVER_H_
