// ListenSockets: the sockets that a server listens on, one for each address that a host has.
// Ownership: owns the descriptors.
// Threads:   one; the const functions any.
// Errors:    Open: UNAVAILABLE naming the address and the system's error.
#ifndef STAGECOACH_SERVICES_COMMON_LISTENER_LISTEN_SOCKETS_H_
#define STAGECOACH_SERVICES_COMMON_LISTENER_LISTEN_SOCKETS_H_

#include <sys/socket.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace stagecoach {

class ListenSockets {
 public:
  // host:port. 0.0.0.0 and [::] are every address of the machine, IPv6 included. Port 0 is any free
  // port, the same on all addresses of a name. No other process can listen there (no SO_REUSEPORT).
  // Accepted connections send at once (TCP_NODELAY). They are given up if sent bytes are not
  // confirmed for user_timeout_ms.
  static absl::StatusOr<ListenSockets> Open(const std::string& address, int user_timeout_ms);

  ListenSockets(ListenSockets&& other) noexcept : descriptors_(std::move(other.descriptors_)) {
    other.descriptors_.clear();
  }
  ListenSockets& operator=(ListenSockets&&) = delete;
  ~ListenSockets() { Close(); }

  const std::vector<int>& descriptors() const { return descriptors_; }
  int port() const;
  // Address of the first for programs of this machine: a wildcard through loopback.
  sockaddr_storage Reach() const;
  void Close();

 private:
  ListenSockets() = default;

  std::vector<int> descriptors_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_LISTENER_LISTEN_SOCKETS_H_
