// Callers: finds who makes a call, by the connection's certificate. If a server takes tokens and
// the caller shows no certificate, the token in the call's metadata counts ("authorization: Bearer
// TOKEN"). A caller with a certificate is held to it.
// Unknown tokens are slowed by address (token_guesses.h), where a connection is read: gRPC tells no
// address before it admits a call. If a connection sends a token that may not be tried now, it
// ends. A token that was admitted on a connection stays valid there, whatever others of its address
// do.
// Ownership: shares the token file's reader with the connections' checks.
// Threads:   thread-safe. Of only looks at the time of the token file.
// Errors:    Open: as TokenFile::Open.
// Source:    RFC 6750, section 2.1.
#ifndef STAGECOACH_SERVICES_COMMON_GRPC_ACCESS_CALLERS_H_
#define STAGECOACH_SERVICES_COMMON_GRPC_ACCESS_CALLERS_H_

#include <grpcpp/support/string_ref.h>

#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "services/common/grpc/access/method_roles.h"
#include "services/common/grpc/access/token_guesses.h"
#include "services/common/http2/header_reader.h"
#include "services/common/process/token_file.h"

namespace grpc {
class AuthContext;
}  // namespace grpc

namespace stagecoach {

class Callers {
 public:
  using Metadata = std::multimap<grpc::string_ref, grpc::string_ref>;

  Callers() = default;  // by certificates only
  // token_file: a line names a user, or with the mark an operator. Empty: by certificates only.
  // guesses: shared by all ports of the process; null: its own.
  static absl::StatusOr<std::unique_ptr<Callers>> Open(
      const std::string& token_file, std::shared_ptr<TokenGuesses> guesses = nullptr);

  // The check for one connection from that address (PeerKey), which it may outlive. It is empty if
  // no tokens are taken.
  MayAuthorize CheckOfConnection(const std::string& address) const;
  Caller Of(const grpc::AuthContext& context, const Metadata& metadata) const;
  bool takes_tokens() const { return tokens_ != nullptr; }

 private:
  Callers(std::shared_ptr<TokenFile> tokens, std::shared_ptr<TokenGuesses> guesses)
      : tokens_(std::move(tokens)), guesses_(std::move(guesses)) {}

  const std::shared_ptr<TokenFile> tokens_;
  const std::shared_ptr<TokenGuesses> guesses_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_GRPC_ACCESS_CALLERS_H_
