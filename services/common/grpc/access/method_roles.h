// The only table of methods and the roles that may call them. A test compares it with the services
// of proto/. A method without a row fails that test, and is refused as unknown until it has one.
// Ownership: constants.  Threads: pure functions.
// See:       docs/operations.md, "Roles".
#ifndef STAGECOACH_SERVICES_COMMON_GRPC_ACCESS_METHOD_ROLES_H_
#define STAGECOACH_SERVICES_COMMON_GRPC_ACCESS_METHOD_ROLES_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "services/common/grpc/access/peer_identity.h"

namespace stagecoach {

// One bit a role.
using RoleSet = uint8_t;
constexpr RoleSet SetOf(PeerRole role) {
  return static_cast<RoleSet>(1u << static_cast<unsigned>(role));
}

struct MethodRoles {
  std::string_view service, method;  // "stagecoach.v1.JobService", "SubmitJob"
  RoleSet roles = 0;
  bool any_certificate = false;  // also for certificates without a role

  std::string service_name() const { return std::string(service); }
  std::string method_name() const { return std::string(method); }
  std::string path() const;  // "/stagecoach.v1.JobService/SubmitJob"
};

std::span<const MethodRoles> AllMethodRoles();

// Row of "/stagecoach.v1.JobService/SubmitJob"; null: no such method.
const MethodRoles* FindMethodRoles(std::string_view path);

// A caller as its certificate or its token identifies it.
struct Caller {
  absl::StatusOr<PeerIdentity> identity;  // UNAUTHENTICATED: it has neither
  std::string common_name;                // of the certificate, for people; may be empty
  bool by_token = false;
};
// The label of a metric: a role, or "none".
const char* RoleLabel(const Caller& caller);

// Whether this caller may call this method. UNIMPLEMENTED: there is no such method.
// PERMISSION_DENIED names method, caller, allowed roles and remedy. `any_certificate`: a
// certificate without a role may call everything. UNAUTHENTICATED: as the caller's identity says.
absl::Status CheckCall(std::string_view path, const Caller& caller, bool any_certificate);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_GRPC_ACCESS_METHOD_ROLES_H_
