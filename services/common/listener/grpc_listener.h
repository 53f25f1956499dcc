// GrpcListener: accepts connections for a gRPC server, in gRPC's place. If the process has no
// descriptor left for a connection, gRPC 1.51 stops listening for ever (upstream issue 20418). This
// one closes the newcomer and goes on. It limits the number of connections, in all and by address
// (connection_table.h).
// Ownership: owns its sockets and its thread; borrows the clock. `take` gets an accepted descriptor
//            with its ownership.
// Threads:   Start and Stop: one thread, Start once. All others are thread-safe. `take` is called
//            on the thread "accept", between Start and Stop only.
// Errors:    none while it runs: refusals are counted, and logged at most once in
//            kSecondsBetweenLines.
#ifndef STAGECOACH_SERVICES_COMMON_LISTENER_GRPC_LISTENER_H_
#define STAGECOACH_SERVICES_COMMON_LISTENER_GRPC_LISTENER_H_

#include <sys/socket.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>

#include "base/threads/clock.h"
#include "base/threads/thread.h"
#include "services/common/listener/connection_table.h"
#include "services/common/listener/listen_sockets.h"
#include "services/common/observe/log_turn.h"
#include "services/common/observe/metrics.h"
#include "services/common/process/server_flags.h"

namespace stagecoach {

class GrpcListener {
 public:
  static constexpr double kSecondsBetweenLines = 10;

  // Lowers limits.most to the share of the limit of open files.
  GrpcListener(ListenSockets sockets, const ConnectionLimits& limits,
               const Clock* clock = SystemClock::Get());
  ~GrpcListener() { Stop(); }

  // take(descriptor, listening descriptor): owns the first afterwards.
  void Start(std::function<void(int, int)> take);
  void Stop();  // stops listening; connections stay

  int port() const { return port_; }
  // Address for programs of this machine; also after Stop.
  const sockaddr_storage& reach() const { return reach_; }
  // Exempts the connection from this address, the server's own, from the limits.
  void Expect(const sockaddr_storage& from);
  // True if the listener has met or refused others within a second, and the connection expected
  // last was not among them. If a dial then fails, it waited behind strangers, and the server may
  // be well.
  bool BusyWithOthers();
  void Write(MetricWriter& writer);

 private:
  enum class Reason { kTotal, kPeer, kDescriptors };

  void Run();
  // Accepts from one listening socket until nobody waits there. False: it must pause, because it
  // cannot even refuse.
  bool AcceptAll(int listening);
  bool RefuseForDescriptors(int listening);
  void Meet(int descriptor, int listening, const sockaddr_storage& from);
  void CountRefusal(Reason reason, const std::string& from);
  bool IsExpected(const sockaddr_storage& from);

  ListenSockets sockets_;
  const int port_;
  const sockaddr_storage reach_;
  const int most_;
  ConnectionTable table_;
  const Clock* const clock_;
  LogTurn turn_{kSecondsBetweenLines};
  std::atomic<uint64_t> refused_[3] = {};  // by Reason
  std::atomic<double> met_seconds_;        // last arrival
  std::mutex mutex_;                       // guards the next two
  sockaddr_storage expected_{};
  bool expected_came_ = false;
  std::function<void(int, int)> take_;
  int spare_ = -1;  // given up to accept, and close, a connection without a descriptor
  int stop_ = -1;   // an eventfd: readable when the thread shall end
  Thread thread_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_LISTENER_GRPC_LISTENER_H_
