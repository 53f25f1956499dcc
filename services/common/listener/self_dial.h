// SelfDial: one dial of a process to its own gRPC port. It connects, does a TLS handshake if there
// are certificates, and reads the first bytes of an HTTP/2 server. It uses the system's sockets and
// no channel: a stage's gRPC must not have a second thread that polls.
// Threads:   any; blocks for two seconds at each of these steps, at most.
// Errors:    UNAVAILABLE with the step that failed. If a server ends the connection after the
//            handshake, it has answered: so does one with an expired certificate, which a new
//            process would not mend. OK if the dial itself lacks a descriptor or memory: then the
//            port's state is unknown.
#ifndef STAGECOACH_SERVICES_COMMON_LISTENER_SELF_DIAL_H_
#define STAGECOACH_SERVICES_COMMON_LISTENER_SELF_DIAL_H_

#include <sys/socket.h>

#include <functional>
#include <optional>

#include "absl/status/status.h"
#include "services/common/tls/tls_check.h"

namespace stagecoach {

// expect: called with the address that the connection will come from, before it does.
absl::Status SelfDial(const sockaddr_storage& to, const std::optional<TlsPems>& pems,
                      const std::function<void(const sockaddr_storage&)>& expect);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_LISTENER_SELF_DIAL_H_
