// SimulatedChannel: a gRPC channel of a process to the process at a host, for unary calls. It dials
// when it is asked for something; while it does, calls wait, and when that fails they fail, as do
// those within the back-off after it. A connection that breaks ends the calls under way as
// UNAVAILABLE, whether the server has carried them out or not. Requests pass threads before they
// are sent, so two calls may arrive in another order than they were made in.
// Ownership: shared with its calls, which keep it.
// Threads:   one. `failed` and answers run on a thread of the caller's process, never within Call;
//            exactly one of the two, unless the process ends.
#ifndef STAGECOACH_TESTS_SIMULATION_HOST_SIMULATED_CHANNEL_H_
#define STAGECOACH_TESTS_SIMULATION_HOST_SIMULATED_CHANNEL_H_

#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "tests/simulation/host/simulated_network.h"

namespace stagecoach {

class SimulatedChannel : public std::enable_shared_from_this<SimulatedChannel> {
 public:
  using Work = SimulatedNetwork::Work;
  using Failed = std::function<void(const absl::Status&)>;
  using Answer = std::function<void(Work at_caller)>;  // to be called by the server, any time
  using Serve = std::function<void(const Answer& answer)>;

  SimulatedChannel(SimulatedNetwork* network, int from, uint64_t process, int to)
      : network_(network), from_(from), process_(process), to_(to) {}

  // deadline_seconds 0: none.
  void Call(Serve serve, Failed failed, double deadline_seconds = 0);

 private:
  struct OneCall {
    Serve serve;
    Failed failed;
    bool over = false;
  };
  using CallPointer = std::shared_ptr<OneCall>;

  void Connect();
  void Connected(SimulatedNetwork::ConnectionPointer connection);
  void Start(const CallPointer& call);
  void Send(const CallPointer& call);
  void Fail(const CallPointer& call, const absl::Status& status);
  void FailAll(std::vector<CallPointer>* calls, const absl::Status& status);

  SimulatedNetwork* const network_;
  const int from_;
  const uint64_t process_;
  const int to_;
  SimulatedNetwork::ConnectionPointer connection_;  // null: none
  bool dialling_ = false;
  double backoff_seconds_ = 0;  // 0: the last connection was good
  double backoff_until_ = 0;
  std::vector<CallPointer> waiting_, under_way_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_TESTS_SIMULATION_HOST_SIMULATED_CHANNEL_H_
