// TlsExpiry: when the certificates end that a server was started with. It goes on with those: a
// renewed file counts from the next start on, so the metric tells of a forgotten restart too.
// Threads:   pure functions; any thread.
// Units:     Unix seconds.
// Errors:    ReadTlsExpiry: INVALID_ARGUMENT naming the flag of a text that is no certificate.
#ifndef STAGECOACH_SERVICES_COMMON_GRPC_TLS_EXPIRY_H_
#define STAGECOACH_SERVICES_COMMON_GRPC_TLS_EXPIRY_H_

#include <optional>

#include "absl/status/statusor.h"
#include "services/common/grpc/tls_check.h"
#include "services/common/observe/metrics.h"
#include "services/common/process/server_flags.h"

namespace stagecoach {

struct TlsExpiry {
  double identity_unix_seconds = 0;   // the first to end of the certificate and what signed it
  double authority_unix_seconds = 0;  // the last to end of the authorities that peers are held to
};

absl::StatusOr<TlsExpiry> ReadTlsExpiry(const TlsPems& pems);

// Of the files that the flags name; nothing without TLS.
absl::StatusOr<std::optional<TlsExpiry>> LoadTlsExpiry(const TlsFlags& tls);

void WriteTlsMetrics(const std::optional<TlsExpiry>& expiry, MetricWriter& writer);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_GRPC_TLS_EXPIRY_H_
