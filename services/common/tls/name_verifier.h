// NameVerifier: checks the server's certificate after a TLS handshake. It must be for the name that
// was dialed, and of a peer who is expected there. For the first, gRPC has a verifier, but it does
// not say what is wrong.
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

// Of the URIs in a certificate; an error says what is wrong with them. Thread-safe.
using UriCheck = std::function<absl::Status(std::span<const std::string> uris)>;

// check_uris: empty: any will do.
std::shared_ptr<grpc::experimental::CertificateVerifier> MakeNameVerifier(UriCheck check_uris = {});

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_TLS_NAME_VERIFIER_H_
