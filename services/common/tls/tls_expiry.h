// TlsExpiry: when a server's certificates end (tls_identity.h).
// Threads:   pure functions; any thread.
// Units:     Unix seconds.
// Errors:    ReadTlsExpiry: INVALID_ARGUMENT naming the flag of a text that is no certificate.
#ifndef STAGECOACH_SERVICES_COMMON_TLS_TLS_EXPIRY_H_
#define STAGECOACH_SERVICES_COMMON_TLS_TLS_EXPIRY_H_

#include <optional>

#include "absl/status/statusor.h"
#include "services/common/observe/metrics.h"
#include "services/common/tls/tls_check.h"

namespace stagecoach {

struct TlsExpiry {
  double identity_unix_seconds = 0;   // first end of the certificate and its signers
  double authority_unix_seconds = 0;  // last end of the authorities of peers
};

absl::StatusOr<TlsExpiry> ReadTlsExpiry(const TlsPems& pems);

// Writes nothing without TLS.
void WriteTlsMetrics(const std::optional<TlsExpiry>& expiry, MetricWriter& writer);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_TLS_TLS_EXPIRY_H_
