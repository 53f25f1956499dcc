// CertificateEntry: one certificate of a cluster, by the text [ROLE:]NAME[=SAN,SAN...] that a
// person types. A SAN is a DNS name, an IP address, or a wildcard such as *.stage.svc.
// Ownership: values.  Threads: pure functions.
// Errors:    INVALID_ARGUMENT with the entry, the wrong part and the right form.
#ifndef STAGECOACH_SERVICES_COMMON_TLS_CERTIFICATE_ENTRY_H_
#define STAGECOACH_SERVICES_COMMON_TLS_CERTIFICATE_ENTRY_H_

#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "services/common/grpc/access/peer_identity.h"

namespace stagecoach {

struct CertificateEntry {
  PeerIdentity identity;
  // "DNS:stage-0", "IP:127.0.0.1": NAME, localhost and 127.0.0.1 first, since neighbours dial NAME
  // and health checks dial loopback; then the SANs. Each once.
  std::vector<std::string> hosts;

  std::string uri() const;  // "spiffe://stagecoach/stage/stage-0"
};

// Without ROLE, the names coordinator, user and operator are their own role, client is an operator,
// and any other name is a stage.
absl::StatusOr<CertificateEntry> ParseCertificateEntry(const std::string& entry);

// All of them. Two entries of one NAME are refused: their files would have one folder.
absl::StatusOr<std::vector<CertificateEntry>> ParseCertificateEntries(
    std::span<const std::string> entries);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_TLS_CERTIFICATE_ENTRY_H_
