// Callers: who makes a call, by the connection's certificate or, where a server takes tokens and the
// caller shows no certificate, by the token in the call's metadata ("authorization: Bearer TOKEN").
// Who shows a certificate is held to it.
// Ownership: owns the token file's reader.
// Threads:   thread-safe. Of: one look at the time of the token file, no more.
// Errors:    Open: as TokenFile::Open.
// Source:    RFC 6750, section 2.1.
#ifndef STAGECOACH_SERVICES_COMMON_GRPC_CALLERS_H_
#define STAGECOACH_SERVICES_COMMON_GRPC_CALLERS_H_

#include <grpcpp/support/string_ref.h>

#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "services/common/grpc/method_roles.h"
#include "services/common/process/token_file.h"

namespace grpc {
class AuthContext;
}  // namespace grpc

namespace stagecoach {

class Callers {
 public:
  using Metadata = std::multimap<grpc::string_ref, grpc::string_ref>;

  Callers() = default;  // by certificates alone
  // token_file: a line names a user, or with the mark an operator; empty: by certificates alone.
  static absl::StatusOr<std::unique_ptr<Callers>> Open(const std::string& token_file);

  Caller Of(const grpc::AuthContext& context, const Metadata& metadata) const;
  bool takes_tokens() const { return tokens_ != nullptr; }

 private:
  const std::unique_ptr<TokenFile> tokens_;
  explicit Callers(std::unique_ptr<TokenFile> tokens) : tokens_(std::move(tokens)) {}
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_GRPC_CALLERS_H_
