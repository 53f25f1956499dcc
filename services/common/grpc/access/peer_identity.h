// PeerIdentity: the caller's role and name, by its certificate. A URI among the certificate's
// alternative names has them: spiffe://stagecoach/ROLE/NAME, exactly one. Other URIs (another
// scheme or trust domain) are ignored.
// Ownership: values.  Threads: pure functions.
// Errors:    NOT_FOUND: the certificate names no role. INVALID_ARGUMENT, naming the URI and the
//            right form: it names two, or one that cannot be read. Such a certificate was meant to
//            be limited, so it does not count as one without a role.
// Source:    SPIFFE ID, section 2 (characters of a path, one ID a certificate).
// See:       docs/operations.md, "Roles"; services/common/tls/certificate_entry.h.
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

// Identity in a certificate with these URIs.
absl::StatusOr<PeerIdentity> ParsePeerIdentity(std::span<const std::string> uris);

// Identity of the connection's peer; NOT_FOUND if it has no certificate.
absl::StatusOr<PeerIdentity> PeerOf(const grpc::AuthContext& context);

// Pods that share a certificate have numbers below this: as many as a job may have stages.
inline constexpr int kMostSharedNames = 1024;
// Whether the holder may be the stage of that name: its own, or its own with a number up to 65535
// behind it. Pods of a StatefulSet share a certificate ("stage" may be "stage-3"). A stage without
// --name is <host name>-<port> ("box" may be "box-8101"). CheckRegisters decides about
// registration; afterwards nobody checks the address of a name.
bool MayBeStage(const PeerIdentity& holder, std::string_view stage);
// Whether the holder may register that name at that address: as above, but a number from
// kMostSharedNames on is a port, that of the address. The fleet limits the names of a certificate
// at a time (Fleet::kMostOfCertificate). PERMISSION_DENIED says whose certificate it is and what it
// may be.
absl::Status CheckRegisters(const PeerIdentity& holder, std::string_view stage,
                            std::string_view address);
// The same for a server that was dialed as that stage; its certificate has these URIs.
// any_certificate: a certificate without a role passes. PERMISSION_DENIED says whose it is.
absl::Status CheckIsStage(std::span<const std::string> uris, std::string_view stage,
                          bool any_certificate);
// The same of a connection's peer. OK for a peer without a certificate or without a role: the
// server admitted it as it is. PERMISSION_DENIED says whose certificate it is and what it may be.
absl::Status CheckMayBeStage(const grpc::AuthContext& peer, std::string_view stage);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_GRPC_ACCESS_PEER_IDENTITY_H_
