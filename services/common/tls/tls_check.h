// Finds the fault of a TLS set-up, in words an operator can act on. gRPC says "Socket closed" to a
// client whose certificate was refused. It says "certificate verify failed" for four different
// reasons.
// Threads:   any; ExplainTlsFailure blocks for up to four seconds.
// Errors:    CheckIdentity: FAILED_PRECONDITION naming the flag, the file and the remedy.
#ifndef STAGECOACH_SERVICES_COMMON_TLS_TLS_CHECK_H_
#define STAGECOACH_SERVICES_COMMON_TLS_TLS_CHECK_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/common/process/server_flags.h"

namespace stagecoach {

// PEM texts, not file names.
struct TlsPems {
  std::string cert, key, root;
  friend bool operator==(const TlsPems&, const TlsPems&) = default;
};

// Reads the three files; with a token only the authorities'. NOT_FOUND names the flag of one that
// cannot be read, is empty, or is a pipe or folder.
absl::StatusOr<TlsPems> ReadPems(const TlsFlags& tls);

// Checks that the certificate is valid now, belongs to the key, and is signed by the authority.
// With a token it only checks that there is an authority. tls only names the files in errors.
absl::Status CheckIdentity(const TlsFlags& tls, const TlsPems& pems);

// A warning, with the remedy, if others than this process's user may read or write the key's file.
// Empty if they may not, or if there is no such file. A file of root may be readable to the
// process's group, as Kubernetes mounts secrets.
std::string OpenKeyWarning(const TlsFlags& tls);

// Whether the first certificate of a PEM text is for that name or IP address.
bool CertificateIsFor(const std::string& pem, const std::string& host);

// Connects to host:port as a gRPC client with these flags would, and returns the obstacle: "its
// certificate has expired", "its certificate is not for this name: ...", "it refused the
// certificate of this program: ..." Empty if the way is clear. Empty too if the address does not
// answer: gRPC's own message is then the better one.
std::string ExplainTlsFailure(const std::string& address, const TlsFlags& tls);

// Does a TLS handshake, with these as this side's own, with the gRPC server behind a socket that
// has timeouts. Then sends `first`. OK once the server has answered, even if it only closes the
// connection after the handshake. Does not check its certificate. UNAVAILABLE: the handshake did
// not end, or nothing followed.
absl::Status ShakeHands(int connected, const TlsPems& pems, const std::string& first);

// `error`, if UNAVAILABLE, with the obstacle (if any) in front of its message.
absl::Status WithTlsReason(const absl::Status& error, const std::string& address,
                           const TlsFlags& tls);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_TLS_TLS_CHECK_H_
