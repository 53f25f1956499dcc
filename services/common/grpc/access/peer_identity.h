// PeerIdentity: who calls, by its certificate. A URI among the certificate's alternative names says
// so: spiffe://stagecoach/ROLE/NAME, exactly one. URIs of others (another scheme, another trust
// domain) are not looked at.
// Ownership: values.  Threads: pure functions.
// Errors:    NOT_FOUND: the certificate names no role. INVALID_ARGUMENT, naming the URI and what
//            would be right: it names two, or one that cannot be read. That is no certificate
//            without a role: somebody meant to limit it.
// Source:    SPIFFE ID, section 2 (characters of a path, one ID a certificate).
// See:       docs/operations.md, "Roles"; deploy/certs/make-certs.sh.
#ifndef STAGECOACH_SERVICES_COMMON_GRPC_ACCESS_PEER_IDENTITY_H_
#define STAGECOACH_SERVICES_COMMON_GRPC_ACCESS_PEER_IDENTITY_H_

#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace grpc {
class AuthContext;
}  // namespace grpc

namespace stagecoach {

enum class PeerRole { kCoordinator, kStage, kUser, kOperator };
inline constexpr PeerRole kPeerRoles[] = {PeerRole::kCoordinator, PeerRole::kStage, PeerRole::kUser,
                                          PeerRole::kOperator};
const char* PeerRoleName(PeerRole role);  // "coordinator", as in the URI

struct PeerIdentity {
  PeerRole role = PeerRole::kUser;
  std::string name;  // letters, digits, '.', '-', '_'; not empty
  friend bool operator==(const PeerIdentity&, const PeerIdentity&) = default;
};

// Of the certificate with these URIs.
absl::StatusOr<PeerIdentity> ParsePeerIdentity(std::span<const std::string> uris);

// Of the connection's peer; NOT_FOUND where it has no certificate at all.
absl::StatusOr<PeerIdentity> PeerOf(const grpc::AuthContext& context);

// The numbers of the pods that share a certificate end before it: as many as a job may have stages.
inline constexpr int kMostSharedNames = 1024;
// Whether the holder may be the stage of that name: its own, or its own with a number up to 65535
// behind it. The pods of a StatefulSet share a certificate ("stage" may be "stage-3"), and a stage
// without --name is <host name>-<port> ("box" may be "box-8101"). Whether a name may be registered
// is CheckRegisters's; who has registered it is no longer asked for its address.
bool MayBeStage(const PeerIdentity& holder, std::string_view stage);
// Whether the holder may register that name at that address: as above, but a number from
// kMostSharedNames on is a port, that of the address. How many names a certificate has at a time is
// the fleet's (Fleet::kMostOfCertificate). PERMISSION_DENIED says whose certificate it is and what
// it may be.
absl::Status CheckRegisters(const PeerIdentity& holder, std::string_view stage,
                            std::string_view address);
// The same of a server's certificate with these URIs, when it was dialed as that stage.
// any_certificate: a certificate without a role passes. PERMISSION_DENIED says whose it is.
absl::Status CheckIsStage(std::span<const std::string> uris, std::string_view stage,
                          bool any_certificate);
// The same of a connection's peer. OK for one without a certificate, or whose certificate names no
// role: it has been let in as it is. PERMISSION_DENIED says whose certificate it is and what it may
// be.
absl::Status CheckMayBeStage(const grpc::AuthContext& peer, std::string_view stage);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_GRPC_ACCESS_PEER_IDENTITY_H_
