// NameVerifier: checks the server's certificate after a TLS handshake. It must be for the dialed
// name, and of the expected peer. gRPC has a verifier for the first, but it does not name the
// fault.
// Threads:   thread-safe; it never waits.
// Errors:    a connection that fails: "Peer name HOST is not in peer certificate".
#ifndef STAGECOACH_SERVICES_COMMON_TLS_NAME_VERIFIER_H_
#define STAGECOACH_SERVICES_COMMON_TLS_NAME_VERIFIER_H_

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"

namespace grpc::experimental {
class CertificateVerifier;
}  // namespace grpc::experimental

namespace stagecoach {

// Checks the URIs of a certificate; an error names their fault. Thread-safe.
using UriCheck = std::function<absl::Status(std::span<const std::string> uris)>;

// check_uris: empty: accepts any.
std::shared_ptr<grpc::experimental::CertificateVerifier> MakeNameVerifier(UriCheck check_uris = {});

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_TLS_NAME_VERIFIER_H_
