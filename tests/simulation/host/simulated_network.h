// SimulatedNetwork: hosts with one process each, and perhaps some that were detached, the paths between them, and TCP connections
// between processes.
//
// A path is one way from a host to another. While it is closed nothing passes, and nobody is told:
// what was sent is sent again when it opens, as TCP does. Both ends of a connection ask for signs
// of life (gRPC's keepalive, a second and a second), each at moments of its own, so a connection
// through a closed path, or to a stopped process, ends between one and two seconds later, at each
// end by itself. A lost packet is one that comes late, and holds up what follows on its connection.
// A process that ends resets its connections; a host without power says nothing.
// Ownership: borrows time, random numbers and trace. Connections are shared by their ends.
// Threads:   one. Everything that a process does runs through Post or a connection: it waits while
//            the process is stopped, and never happens once it has ended.
// Units:     virtual seconds.
// Errors:    UNAVAILABLE for all that becomes of a connection.
#ifndef STAGECOACH_TESTS_SIMULATION_HOST_SIMULATED_NETWORK_H_
#define STAGECOACH_TESTS_SIMULATION_HOST_SIMULATED_NETWORK_H_

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/simulation/host/event_trace.h"
#include "tests/simulation/host/seeded_random.h"
#include "tests/simulation/host/virtual_time.h"

namespace stagecoach {

class SimulatedNetwork {
 public:
  using Work = VirtualTime::Work;

  // Between two processes; end 0 dialled, end 1 was listening. What is sent arrives in order.
  class Connection {
   public:
    bool open(int end) const { return ends_[end].open; }
    int host(int end) const { return ends_[end].host; }
    void Send(int from, Work at_peer);
    void Close(int end);  // by the process: it hears no more, and its peer is told
    void WhenClosed(int end, std::function<void(const absl::Status&)> hear) {
      ends_[end].closed = std::move(hear);
    }

   private:
    friend class SimulatedNetwork;
    struct End {
      int host = 0;
      uint64_t process = 0;
      bool open = true;
      int64_t arrival_nanos = 0;  // of the last message to this end
      std::deque<Work> held;      // to this end, behind a closed path; these keep the connection
      std::function<void(const absl::Status&)> closed;
      void Drop();  // nothing comes here any more
    };
    SimulatedNetwork* network_ = nullptr;
    std::weak_ptr<Connection> self_;
    std::array<End, 2> ends_;
  };
  using ConnectionPointer = std::shared_ptr<Connection>;

  SimulatedNetwork(VirtualTime* time, SeededRandom* random, EventTrace* trace, int hosts);

  ~SimulatedNetwork();

  // ---- processes
  uint64_t StartProcess(int host);  // the number of the process
  void EndProcess(int host, bool power_cut);
  void StopProcess(int host);
  void ContinueProcess(int host);
  // The process goes on, but nothing passes between it and others any more, and another may start
  // at the host's address: its machine was cut off and replaced.
  void Detach(int host);
  void StopDetached(uint64_t process) { detached_.at(process).stopped = true; }
  void ContinueDetached(uint64_t process);
  void EndDetached(uint64_t process) { detached_.erase(process); }
  bool detached_stopped(uint64_t process) const { return detached_.at(process).stopped; }
  bool Lives(int host, uint64_t process) const { return hosts_[host].process == process; }
  bool alive(int host) const { return hosts_[host].process != 0; }
  bool stopped(int host) const { return hosts_[host].stopped; }
  // On a thread of this process, after so long.
  void Post(int host, uint64_t process, double seconds, Work work);

  // ---- paths
  void ClosePath(int from, int to);
  void OpenPath(int from, int to);
  void SetDelay(int from, int to, double seconds) { At(from, to).delay = seconds; }
  void SetLoss(int from, int to, double share) { At(from, to).loss = share; }
  void SetFlips(int from, int to, double share) { At(from, to).flips = share; }
  void SetRepeats(double share) { repeats_ = share; }
  void ResetConnections(int a, int b);
  // Draws: is a bit of this message flipped, is this request carried out twice?
  bool Flips(int from, int to) {
    const double share = At(from, to).flips;
    return share > 0 && random_->Chance(share);
  }
  bool Repeats() { return repeats_ > 0 && random_->Chance(repeats_); }

  // A call of one message there and one back, to a process that answers, would get through now.
  bool Reaches(int from, int to) { return !InTrouble(from, to) && alive(to); }

  // To the process of a host, on behalf of one.
  void Dial(int from, uint64_t process, int to,
            std::function<void(absl::StatusOr<ConnectionPointer>)> done);

  VirtualTime& time() { return *time_; }
  SeededRandom& random() { return *random_; }

 private:
  struct Host {
    uint64_t process = 0;  // 0: none
    bool stopped = false, dark = false;
    int64_t stopped_nanos = 0;
    std::deque<Work> kernel;  // what came for a stopped process
  };
  struct Detached {
    bool stopped = false;
    std::deque<Work> kernel;
  };
  struct Path {
    bool open = true;
    int64_t closed_nanos = 0;
    double delay = 0, loss = 0, flips = 0;
    uint64_t trouble = 0;  // of `from` with `to`: odd while there is some
  };

  Path& At(int from, int to) { return paths_[static_cast<size_t>(from)][static_cast<size_t>(to)]; }
  void RefuseOldConnections(int host);
  double PassSeconds(int from, int to);
  void RunAt(int host, uint64_t process, Work work);
  void Arrive(const ConnectionPointer& connection, int to, Work work);
  void Deliver(const ConnectionPointer& connection, int to, double seconds, Work work);
  void Break(const ConnectionPointer& connection, int end, const char* why);
  void TellPeer(const ConnectionPointer& connection, int closed_end);
  bool InTrouble(int host, int peer);
  void LookForTrouble();
  void AskForLife(const ConnectionPointer& connection, int end);
  std::vector<ConnectionPointer> Between(int a, int b) const;

  VirtualTime* const time_;
  SeededRandom* const random_;
  EventTrace* const trace_;
  std::vector<Host> hosts_;
  std::vector<std::vector<Path>> paths_;
  std::vector<ConnectionPointer> connections_;
  std::map<uint64_t, Detached> detached_;  // by process
  uint64_t last_process_ = 0;
  double repeats_ = 0;
};

}  // namespace stagecoach

#endif  // STAGECOACH_TESTS_SIMULATION_HOST_SIMULATED_NETWORK_H_
