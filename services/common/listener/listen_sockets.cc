#include "services/common/listener/listen_sockets.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "services/common/process/server_flags.h"

namespace stagecoach {
namespace {

struct BindAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;
};

// The port stands at the same place for both families.
void SetPort(BindAddress* address, int port) {
  reinterpret_cast<sockaddr_in*>(&address->storage)->sin_port = htons(static_cast<uint16_t>(port));
}

int PortIn(const sockaddr_storage& storage) {
  return ntohs(reinterpret_cast<const sockaddr_in*>(&storage)->sin_port);
}

sockaddr_storage BoundName(int descriptor) {
  sockaddr_storage storage{};
  socklen_t length = sizeof(storage);
  getsockname(descriptor, reinterpret_cast<sockaddr*>(&storage), &length);
  return storage;
}

absl::StatusOr<std::vector<BindAddress>> ResolveHost(std::string host) {
  // One socket for both families, where the machine has IPv6.
  if (host == "0.0.0.0") host = "[::]";
  if (absl::StartsWith(host, "[")) host = host.substr(1, host.size() - 2);
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  if (const int error = getaddrinfo(host.c_str(), nullptr, &hints, &found); error != 0) {
    return absl::UnavailableError(gai_strerror(error));
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owned(found, freeaddrinfo);
  std::vector<BindAddress> addresses;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    BindAddress address;
    std::memcpy(&address.storage, one->ai_addr, one->ai_addrlen);
    address.length = one->ai_addrlen;
    // /etc/hosts with two lines for localhost gives 127.0.0.1 twice.
    const auto same = [&](const BindAddress& other) {
      return std::memcmp(&other.storage, &address.storage, sizeof(address.storage)) == 0;
    };
    if (std::none_of(addresses.begin(), addresses.end(), same)) addresses.push_back(address);
  }
  return addresses;
}

bool IsWildcard6(const BindAddress& address) {
  return address.storage.ss_family == AF_INET6 &&
         IN6_IS_ADDR_UNSPECIFIED(
             &reinterpret_cast<const sockaddr_in6*>(&address.storage)->sin6_addr);
}

BindAddress Wildcard4() {
  BindAddress address;
  address.storage.ss_family = AF_INET;
  address.length = sizeof(sockaddr_in);
  return address;
}

void SetOption(int descriptor, int level, int name, int value) {
  setsockopt(descriptor, level, name, &value, sizeof(value));
}

// -1: errno says why. Accepted sockets inherit the options.
int ListenOn(const BindAddress& address, int user_timeout_ms) {
  const int descriptor =
      socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return -1;
  SetOption(descriptor, SOL_SOCKET, SO_REUSEADDR, 1);  // also while connections of before linger
  if (address.storage.ss_family == AF_INET6) SetOption(descriptor, IPPROTO_IPV6, IPV6_V6ONLY, 0);
  SetOption(descriptor, IPPROTO_TCP, TCP_NODELAY, 1);
  SetOption(descriptor, IPPROTO_TCP, TCP_USER_TIMEOUT, user_timeout_ms);
  if (bind(descriptor, reinterpret_cast<const sockaddr*>(&address.storage), address.length) == 0 &&
      listen(descriptor, SOMAXCONN) == 0) {
    return descriptor;
  }
  const int error = errno;
  close(descriptor);
  errno = error;
  return -1;
}

}  // namespace

absl::StatusOr<ListenSockets> ListenSockets::Open(const std::string& address, int user_timeout_ms) {
  std::string host;
  int port = 0;
  RETURN_IF_ERROR(ParseAddress("--listen", address, &host, &port));
  const std::string what = absl::StrCat("cannot serve gRPC on ", address);
  absl::StatusOr<std::vector<BindAddress>> addresses = ResolveHost(host);
  if (!addresses.ok()) return Annotate(addresses.status(), what);
  ListenSockets sockets;
  const bool any_port = port == 0;
  int error = 0;
  for (BindAddress& one : *addresses) {
    SetPort(&one, port);
    int descriptor = ListenOn(one, user_timeout_ms);
    if (descriptor < 0 && errno != EADDRINUSE && IsWildcard6(one)) {
      BindAddress v4 = Wildcard4();
      SetPort(&v4, port);
      descriptor = ListenOn(v4, user_timeout_ms);
    }
    if (descriptor >= 0) {
      sockets.descriptors_.push_back(descriptor);
      port = sockets.port();
      continue;
    }
    // localhost has an IPv6 address also where loopback has none; one of them is enough. But a port
    // that somebody has on any of them is theirs, if it was asked for.
    error = errno;
    if (error == EADDRINUSE && !any_port) break;
  }
  const bool taken = error == EADDRINUSE && !any_port;
  if (!sockets.descriptors_.empty() && !taken) return sockets;
  return absl::UnavailableError(
      absl::StrCat(what, ": ", std::strerror(error), taken ? "; is the port taken?" : ""));
}

int ListenSockets::port() const { return PortIn(BoundName(descriptors_.front())); }

sockaddr_storage ListenSockets::Reach() const {
  sockaddr_storage storage = BoundName(descriptors_.front());
  if (storage.ss_family == AF_INET) {
    auto* const v4 = reinterpret_cast<sockaddr_in*>(&storage);
    if (v4->sin_addr.s_addr == htonl(INADDR_ANY)) v4->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  } else {
    // It takes IPv4 too, and that loopback is everywhere: containers have no ::1.
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(storage);
    if (!IN6_IS_ADDR_UNSPECIFIED(&v6.sin6_addr)) return storage;
    BindAddress v4 = Wildcard4();
    reinterpret_cast<sockaddr_in*>(&v4.storage)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    SetPort(&v4, PortIn(storage));
    return v4.storage;
  }
  return storage;
}

void ListenSockets::Close() {
  for (const int descriptor : descriptors_) close(descriptor);
  descriptors_.clear();
}

}  // namespace stagecoach
