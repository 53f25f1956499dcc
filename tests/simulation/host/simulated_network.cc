#include "tests/simulation/host/simulated_network.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "base/errors/check.h"

namespace stagecoach {
namespace {

// A path takes so long, and a packet that was lost so much longer.
constexpr double kLeastPass = 0.0002, kMostPass = 0.002;
constexpr double kLeastResend = 0.2, kMostResend = 0.8;
// Keepalive: a ping a second after the last sign of life, and a second to answer it.
constexpr double kLeastSilence = 1.0, kMostSilence = 2.0;
// Of a connection that nobody answers: the first packet is sent again after a second, the try ends
// after two (channel_arguments.h).
constexpr double kFirstResend = 1.0, kDial = 2.0;

}  // namespace

SimulatedNetwork::SimulatedNetwork(VirtualTime* time, SeededRandom* random, EventTrace* trace,
                                   int hosts)
    : time_(time),
      random_(random),
      trace_(trace),
      hosts_(static_cast<size_t>(hosts)),
      paths_(static_cast<size_t>(hosts), std::vector<Path>(static_cast<size_t>(hosts))) {}

SimulatedNetwork::~SimulatedNetwork() {
  for (const ConnectionPointer& connection : connections_) {
    for (Connection::End& end : connection->ends_) end.Drop();
  }
}

void SimulatedNetwork::Connection::End::Drop() {
  open = false;
  // What they hold may be the last to hold this end's connection.
  const std::deque<Work> dropped = std::exchange(held, {});
  const auto callback = std::exchange(closed, nullptr);
}

// ---- processes ----------------------------------------------------------------------------------

uint64_t SimulatedNetwork::StartProcess(int host) {
  Host& at = hosts_[host];
  CHECK(at.process == 0) << "one process a host";
  const bool was_dark = at.dark;
  at = Host{.process = ++last_process_};
  LookForTrouble();
  if (was_dark) RefuseOldConnections(host);
  trace_->Note("process starts", host, at.process);
  return at.process;
}

// Whoever still writes or pings there is told that the host, which has power again, knows of
// nothing.
void SimulatedNetwork::RefuseOldConnections(int host) {
  for (const ConnectionPointer& connection : connections_) {
    for (const int end : {0, 1}) {
      const Connection::End& peer = connection->ends_[1 - end];
      if (connection->ends_[end].host != host || !peer.open) continue;
      Post(peer.host, peer.process, random_->Between(0, kLeastSilence),
           [this, connection, end] { Break(connection, 1 - end, "connection reset by peer"); });
    }
  }
}

void SimulatedNetwork::EndProcess(int host, bool power_cut) {
  Host& at = hosts_[host];
  const uint64_t process = at.process;
  trace_->Note(power_cut ? "power cut" : "process ends", host, process);
  at = Host{.dark = power_cut};
  for (const ConnectionPointer& connection : connections_) {
    for (const int end : {0, 1}) {
      Connection::End& of = connection->ends_[end];
      if (of.host != host || of.process != process || !of.open) continue;
      of.Drop();
      if (!power_cut) TellPeer(connection, end);
    }
  }
  LookForTrouble();
}

void SimulatedNetwork::StopProcess(int host) {
  Host& at = hosts_[host];
  if (at.process == 0 || at.stopped) return;
  trace_->Note("process is stopped", host, at.process);
  at.stopped = true;
  at.stopped_nanos = time_->nanos();
  LookForTrouble();
}

void SimulatedNetwork::ContinueProcess(int host) {
  Host& at = hosts_[host];
  if (!at.stopped) return;
  trace_->Note("process continues", host, at.process);
  at.stopped = false;
  LookForTrouble();
  const double slept = static_cast<double>(time_->nanos() - at.stopped_nanos) * 1e-9;
  // Its own timers ran out meanwhile: of its connections it may give up some before it has read
  // what came.
  if (slept > kLeastSilence) {
    for (const ConnectionPointer& connection : std::vector<ConnectionPointer>(connections_)) {
      for (const int end : {0, 1}) {
        const Connection::End& of = connection->ends_[end];
        if (of.host == host && of.open && random_->Chance(0.5)) {
          Break(connection, end, "keepalive watchdog timeout");
        }
      }
    }
  }
  const uint64_t process = at.process;
  for (Work& work : std::exchange(at.kernel, {})) RunAt(host, process, std::move(work));
}

void SimulatedNetwork::Detach(int host) {
  Host& at = hosts_[host];
  const uint64_t process = at.process;
  trace_->Note("process is cut off", host, process);
  detached_[process] = {.stopped = at.stopped, .kernel = std::move(at.kernel)};
  at = Host{};
  RefuseOldConnections(host);
  for (const ConnectionPointer& connection : connections_) {
    for (const int end : {0, 1}) {
      Connection::End& of = connection->ends_[end];
      if (of.process != process || !of.open) continue;
      // What came, and was not read yet, is of no use to a caller that hears nothing.
      if (end == 1) {
        of.Drop();
        continue;
      }
      Post(host, process, random_->Between(kLeastSilence, kMostSilence),
           [this, connection, end] { Break(connection, end, "keepalive watchdog timeout"); });
    }
  }
  LookForTrouble();
}

void SimulatedNetwork::ContinueDetached(uint64_t process) {
  Detached& at = detached_.at(process);
  if (!std::exchange(at.stopped, false)) return;
  trace_->Note("process that is cut off continues", 0, process);
  for (Work& work : std::exchange(at.kernel, {})) RunAt(0, process, std::move(work));
}

void SimulatedNetwork::RunAt(int host, uint64_t process, Work work) {
  Host& at = hosts_[host];
  if (at.process != process) {
    const auto found = detached_.find(process);
    if (found == detached_.end()) return;
    if (!found->second.stopped) return work();
    found->second.kernel.push_back(std::move(work));
    return;
  }
  if (at.stopped) {
    at.kernel.push_back(std::move(work));
  } else {
    work();
  }
}

void SimulatedNetwork::Post(int host, uint64_t process, double seconds, Work work) {
  time_->After(seconds, [this, host, process, work = std::move(work)]() mutable {
    RunAt(host, process, std::move(work));
  });
}

// ---- paths --------------------------------------------------------------------------------------

double SimulatedNetwork::PassSeconds(int from, int to) {
  const Path& path = At(from, to);
  double seconds = random_->Between(kLeastPass, kMostPass);
  if (path.delay > 0) seconds += path.delay * random_->Between(0.5, 1.5);
  if (path.loss > 0 && random_->Chance(path.loss)) {
    seconds += random_->Between(kLeastResend, kMostResend);
  }
  return seconds;
}

void SimulatedNetwork::ClosePath(int from, int to) {
  Path& path = At(from, to);
  if (!path.open) return;
  trace_->Note("path closes to", from, static_cast<uint64_t>(to));
  path.open = false;
  path.closed_nanos = time_->nanos();
  LookForTrouble();
}

void SimulatedNetwork::OpenPath(int from, int to) {
  Path& path = At(from, to);
  if (path.open) return;
  trace_->Note("path opens to", from, static_cast<uint64_t>(to));
  path.open = true;
  const double closed = static_cast<double>(time_->nanos() - path.closed_nanos) * 1e-9;
  LookForTrouble();
  for (const ConnectionPointer& connection : Between(from, to)) {
    for (const int end : {0, 1}) {
      Connection::End& of = connection->ends_[end];
      if (of.host != to || of.held.empty()) continue;
      // TCP asks again later each time: for up to as long as the path was closed.
      const double wait = random_->Between(0, std::min(closed, 1.0));
      for (Work& work : std::exchange(of.held, {})) {
        Deliver(connection, end, wait, std::move(work));
      }
    }
  }
}

void SimulatedNetwork::ResetConnections(int a, int b) {
  trace_->Note("connections are reset", a, static_cast<uint64_t>(b));
  for (const ConnectionPointer& connection : Between(a, b)) {
    for (const int end : {0, 1}) {
      Post(connection->ends_[end].host, connection->ends_[end].process,
           random_->Between(0, kMostPass),
           [this, connection, end] { Break(connection, end, "connection reset by peer"); });
    }
  }
}

std::vector<SimulatedNetwork::ConnectionPointer> SimulatedNetwork::Between(int a, int b) const {
  std::vector<ConnectionPointer> between;
  for (const ConnectionPointer& connection : connections_) {
    const int from = connection->ends_[0].host, to = connection->ends_[1].host;
    if ((from == a && to == b) || (from == b && to == a)) between.push_back(connection);
  }
  return between;
}

// ---- connections --------------------------------------------------------------------------------

bool SimulatedNetwork::InTrouble(int host, int peer) {
  return !At(host, peer).open || !At(peer, host).open || hosts_[peer].dark || hosts_[peer].stopped;
}

void SimulatedNetwork::LookForTrouble() {
  for (int host = 0; host < static_cast<int>(hosts_.size()); ++host) {
    for (int peer = 0; peer < static_cast<int>(hosts_.size()); ++peer) {
      uint64_t& trouble = At(host, peer).trouble;
      if (host == peer || InTrouble(host, peer) == (trouble % 2 == 1)) continue;
      if (++trouble % 2 == 0) continue;
      for (const ConnectionPointer& connection : Between(host, peer)) {
        AskForLife(connection, connection->ends_[0].host == host ? 0 : 1);
      }
    }
  }
}

void SimulatedNetwork::AskForLife(const ConnectionPointer& connection, int end) {
  const Connection::End& of = connection->ends_[end];
  if (!of.open) return;
  const int host = of.host, peer = connection->ends_[1 - end].host;
  Post(host, of.process, random_->Between(kLeastSilence, kMostSilence),
       [this, connection, end, host, peer, trouble = At(host, peer).trouble] {
         if (At(host, peer).trouble == trouble)
           Break(connection, end, "keepalive watchdog timeout");
       });
}

void SimulatedNetwork::Dial(int from, uint64_t process, int to,
                            std::function<void(absl::StatusOr<ConnectionPointer>)> done) {
  // To TCP and to HTTP/2 there is a round trip each.
  double way = 0;
  for (int trip = 0; trip < 2; ++trip) way += PassSeconds(from, to) + PassSeconds(to, from);
  const auto answer = [this, from, to, process, done = std::move(done)](bool in_time) {
    if (!in_time || InTrouble(from, to) || detached_.contains(process)) {
      return done(absl::UnavailableError("failed to connect: no answer in time"));
    }
    if (hosts_[to].process == 0) {
      return done(absl::UnavailableError("failed to connect: connection refused"));
    }
    std::erase_if(connections_, [](const ConnectionPointer& connection) {
      return !connection->ends_[0].open && !connection->ends_[1].open;
    });
    auto connection = std::make_shared<Connection>();
    connection->network_ = this;
    connection->self_ = connection;
    connection->ends_[0] = {.host = from, .process = process};
    connection->ends_[1] = {.host = to, .process = hosts_[to].process};
    connections_.push_back(connection);
    done(connection);
  };
  if (!InTrouble(from, to)) {
    Post(from, process, std::min(way, kDial), [answer, in_time = way < kDial] { answer(in_time); });
    return;
  }
  Post(from, process, kFirstResend, [this, answer, from, process, to] {
    if (!InTrouble(from, to)) return answer(true);
    Post(from, process, kDial - kFirstResend, [answer] { answer(false); });
  });
}

void SimulatedNetwork::Connection::Send(int from, Work at_peer) {
  if (!ends_[from].open || network_->detached_.contains(ends_[from].process)) return;
  const ConnectionPointer self = self_.lock();
  const double pass = network_->PassSeconds(ends_[from].host, ends_[1 - from].host);
  network_->Deliver(self, 1 - from, pass, std::move(at_peer));
}

void SimulatedNetwork::Connection::Close(int end) {
  if (!ends_[end].open) return;
  const ConnectionPointer self = self_.lock();
  ends_[end].Drop();
  network_->TellPeer(self, end);
}

void SimulatedNetwork::Deliver(const ConnectionPointer& connection, int to, double seconds,
                               Work work) {
  Connection::End& end = connection->ends_[to];
  end.arrival_nanos = std::max(end.arrival_nanos, time_->nanos() + VirtualTime::Nanos(seconds));
  time_->At(end.arrival_nanos, [this, connection, to, work = std::move(work)]() mutable {
    Arrive(connection, to, std::move(work));
  });
}

void SimulatedNetwork::Arrive(const ConnectionPointer& connection, int to, Work work) {
  Connection::End& end = connection->ends_[to];
  if (hosts_[end.host].process != end.process || !end.open) return;
  // What a stopped process has in its socket it reads later, even from a connection that its peer
  // has given up.
  if (!At(connection->ends_[1 - to].host, end.host).open || !end.held.empty()) {
    end.held.push_back(std::move(work));
    return;
  }
  RunAt(end.host, end.process, [connection, to, work = std::move(work)] {
    if (connection->ends_[to].open) work();
  });
}

void SimulatedNetwork::Break(const ConnectionPointer& connection, int end, const char* why) {
  Connection::End& of = connection->ends_[end];
  if (!of.open) return;
  const auto closed = of.closed;
  of.Drop();
  trace_->Note("connection breaks", of.host,
               static_cast<uint64_t>(connection->ends_[1 - end].host));
  TellPeer(connection, end);
  if (closed) closed(absl::UnavailableError(why));
}

void SimulatedNetwork::TellPeer(const ConnectionPointer& connection, int closed_end) {
  const int peer = 1 - closed_end;
  if (!connection->ends_[peer].open) return;
  const double pass = PassSeconds(connection->ends_[closed_end].host, connection->ends_[peer].host);
  Deliver(connection, peer, pass,
          [this, connection, peer] { Break(connection, peer, "the peer closed the connection"); });
}

}  // namespace stagecoach
