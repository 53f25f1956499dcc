// NameVerifier: after a TLS handshake, whether the server's certificate is for the name that was dialed. gRPC has one,
// which does not say what is wrong.
// Threads:   thread-safe; it never waits.
// Errors:    a connection that fails: "Peer name HOST is not in peer certificate".
#ifndef STAGECOACH_SERVICES_COMMON_TLS_NAME_VERIFIER_H_
#define STAGECOACH_SERVICES_COMMON_TLS_NAME_VERIFIER_H_

#include <memory>

namespace grpc::experimental {
class CertificateVerifier;
}  // namespace grpc::experimental

namespace stagecoach {

std::shared_ptr<grpc::experimental::CertificateVerifier> MakeNameVerifier();

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_TLS_NAME_VERIFIER_H_
