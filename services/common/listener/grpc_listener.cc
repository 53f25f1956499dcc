#include "services/common/listener/grpc_listener.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "services/common/process/open_files.h"

namespace stagecoach {
namespace {

constexpr double kLately = 1;
constexpr int kPauseMilliseconds = 100;
// So many of one socket before the others, and the end, are looked at.
constexpr int kAtOnce = 64;
constexpr const char* kReasonNames[] = {"total", "peer", "descriptors"};

rlim_t OpenFiles() {
  rlimit limit{};
  CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  return limit.rlim_cur;
}

int OpenSpare() { return open("/dev/null", O_RDONLY | O_CLOEXEC); }

std::string ShownPeer(const sockaddr_storage& from) {
  char host[NI_MAXHOST] = "?";
  getnameinfo(reinterpret_cast<const sockaddr*>(&from), sizeof(from), host, sizeof(host), nullptr,
              0, NI_NUMERICHOST);
  return host;
}

// A socket for both families sees IPv4 as ::ffff:a.b.c.d.
sockaddr_storage Unmapped(const sockaddr_storage& address) {
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
  if (address.ss_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) return address;
  sockaddr_storage plain{};
  auto* const v4 = reinterpret_cast<sockaddr_in*>(&plain);
  v4->sin_family = AF_INET;
  v4->sin_port = v6.sin6_port;
  std::memcpy(&v4->sin_addr, v6.sin6_addr.s6_addr + 12, sizeof(v4->sin_addr));
  return plain;
}

bool SamePlace(const sockaddr_storage& a, const sockaddr_storage& b) {
  if (a.ss_family != b.ss_family) return false;
  if (a.ss_family == AF_INET) {
    const auto &x = reinterpret_cast<const sockaddr_in&>(a),
               &y = reinterpret_cast<const sockaddr_in&>(b);
    return x.sin_port == y.sin_port && x.sin_addr.s_addr == y.sin_addr.s_addr;
  }
  if (a.ss_family != AF_INET6) return false;
  const auto &x = reinterpret_cast<const sockaddr_in6&>(a),
             &y = reinterpret_cast<const sockaddr_in6&>(b);
  return x.sin6_port == y.sin6_port && IN6_ARE_ADDR_EQUAL(&x.sin6_addr, &y.sin6_addr);
}

ConnectionLimits Within(ConnectionLimits limits, rlim_t open_files) {
  limits.most = MostConnections(FileShare::kGrpc, limits.most, open_files);
  return limits;
}

}  // namespace

GrpcListener::GrpcListener(ListenSockets sockets, const ConnectionLimits& limits,
                           const Clock* clock)
    : sockets_(std::move(sockets)),
      port_(sockets_.port()),
      reach_(sockets_.Reach()),
      most_(MostConnections(FileShare::kGrpc, limits.most, OpenFiles())),
      table_(Within(limits, OpenFiles()), clock),
      clock_(clock),
      met_seconds_(std::numeric_limits<double>::lowest()),
      spare_(OpenSpare()),
      stop_(eventfd(0, EFD_CLOEXEC)) {
  CHECK(stop_ >= 0) << "no eventfd: " << std::strerror(errno);
  if (most_ < limits.most) {
    spdlog::info("at most {} gRPC connections, not {}: this process may open {} files", most_,
                 limits.most, OpenFiles());
  }
}

void GrpcListener::Start(std::function<void(int, int)> take) {
  take_ = std::move(take);
  thread_ = Thread("accept", [this] { Run(); });
}

void GrpcListener::Stop() {
  if (stop_ < 0) return;
  const uint64_t one = 1;
  CHECK_EQ(write(stop_, &one, sizeof(one)), static_cast<ssize_t>(sizeof(one)));
  thread_.Join();
  sockets_.Close();
  if (spare_ >= 0) close(spare_);
  close(std::exchange(stop_, -1));
}

void GrpcListener::Run() {
  std::vector<pollfd> watched{{stop_, POLLIN, 0}};
  for (const int listening : sockets_.descriptors()) watched.push_back({listening, POLLIN, 0});
  while (true) {
    poll(watched.data(), watched.size(), -1);
    if (watched[0].revents != 0) return;
    bool pause = false;
    for (size_t i = 1; i < watched.size(); ++i) {
      if (watched[i].revents != 0 && !AcceptAll(watched[i].fd)) pause = true;
    }
    // Who waits goes on waiting, and poll would say so at once and for ever.
    if (pause) poll(watched.data(), 1, kPauseMilliseconds);
  }
}

bool GrpcListener::AcceptAll(int listening) {
  for (int i = 0; i < kAtOnce; ++i) {
    sockaddr_storage from{};
    socklen_t length = sizeof(from);
    const int descriptor = accept4(listening, reinterpret_cast<sockaddr*>(&from), &length,
                                   SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (descriptor >= 0) {
      Meet(descriptor, listening, from);
    } else if (errno == EMFILE || errno == ENFILE) {
      if (!RefuseForDescriptors(listening)) return false;
    } else if (errno == EAGAIN) {
      return true;
    } else if (errno == ENOBUFS || errno == ENOMEM) {
      return false;
    }
    // Others are faults of the one connection: it was gone before it was accepted.
  }
  return true;
}

bool GrpcListener::RefuseForDescriptors(int listening) {
  if (spare_ < 0) spare_ = OpenSpare();
  if (spare_ < 0) return false;
  close(std::exchange(spare_, -1));
  sockaddr_storage from{};
  socklen_t length = sizeof(from);
  const int descriptor =
      accept4(listening, reinterpret_cast<sockaddr*>(&from), &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
  const bool refused = descriptor >= 0;
  if (refused) {
    met_seconds_ = clock_->MonotonicSeconds();
    CountRefusal(Reason::kDescriptors, ShownPeer(from));
    close(descriptor);
  }
  spare_ = OpenSpare();
  return refused;
}

void GrpcListener::Meet(int descriptor, int listening, const sockaddr_storage& from) {
  std::string peer;
  met_seconds_ = clock_->MonotonicSeconds();
  if (!IsExpected(from)) {
    peer = PeerKey(from);
    const ConnectionTable::Answer answer = table_.Ask(peer);
    if (answer != ConnectionTable::Answer::kWelcome) {
      CountRefusal(answer == ConnectionTable::Answer::kTooMany ? Reason::kTotal : Reason::kPeer,
                   ShownPeer(from));
      close(descriptor);
      return;
    }
  }
  table_.Add(descriptor, peer);
  take_(descriptor, listening);
}

// Before the connection is closed: who sees that finds it counted.
void GrpcListener::CountRefusal(Reason reason, const std::string& from) {
  ++refused_[static_cast<int>(reason)];
  const std::optional<uint64_t> silent = turn_.Take();
  if (!silent.has_value()) return;
  const std::string why =
      reason == Reason::kTotal  ? absl::StrCat("there are ", most_, " (--max-connections)")
      : reason == Reason::kPeer ? "that address has --max-connections-per-peer of them"
                                : "this process may open no more files (ulimit -n)";
  spdlog::warn("refused a gRPC connection from {}{}: {}", from,
               *silent > 0 ? absl::StrCat(", and ", *silent, " since the last such line") : "",
               why);
}

void GrpcListener::Expect(const sockaddr_storage& from) {
  std::lock_guard<std::mutex> lock(mutex_);
  expected_ = from;
  expected_came_ = false;
}

bool GrpcListener::BusyWithOthers() {
  std::lock_guard<std::mutex> lock(mutex_);
  return !expected_came_ && clock_->MonotonicSeconds() < met_seconds_ + kLately;
}

bool GrpcListener::IsExpected(const sockaddr_storage& from) {
  std::lock_guard<std::mutex> lock(mutex_);
  const bool expected = SamePlace(Unmapped(from), expected_);
  expected_came_ = expected_came_ || expected;
  return expected;
}

void GrpcListener::Write(MetricWriter& writer) {
  writer.Add(metric::kConnections, {}, table_.open());
  for (int i = 0; i < 3; ++i) {
    writer.Add(metric::kConnectionsRefused, {kReasonNames[i]},
               static_cast<double>(refused_[i].load()));
  }
}

}  // namespace stagecoach
