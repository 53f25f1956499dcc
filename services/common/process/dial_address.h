// DialAddress: checks an address that a person typed, before gRPC's resolver sees it. The
// resolver's words ("DNS resolution failed for ...") do not name the mistake.
// Threads: pure function.
#ifndef STAGECOACH_SERVICES_COMMON_PROCESS_DIAL_ADDRESS_H_
#define STAGECOACH_SERVICES_COMMON_PROCESS_DIAL_ADDRESS_H_

#include <string>

#include "absl/status/status.h"

namespace stagecoach {

// Checks "host:port", "[IPv6]:port" or one of gRPC's own forms (dns:, unix:, ipv4:, ipv6:).
// INVALID_ARGUMENT naming `name` (a flag), the address, the mistake and the right form.
absl::Status CheckDialAddress(const std::string& name, const std::string& address);

// Checks an address that a peer gave and others dial: "host:port" or "[IPv6]:port" and nothing
// else. If gRPC knows the host before the colon as a scheme ("unix:1"), it reads a scheme. Such
// hosts are refused, and so are 0.0.0.0 and [::]. Errors as above.
absl::Status CheckPeerAddress(const std::string& name, const std::string& address);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_PROCESS_DIAL_ADDRESS_H_
