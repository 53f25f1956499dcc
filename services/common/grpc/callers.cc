#include "services/common/grpc/callers.h"

#include <grpc/grpc_security_constants.h>
#include <grpcpp/security/auth_context.h>

#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "base/hash.h"
#include "base/status.h"
#include "services/common/grpc/peer_identity.h"

namespace stagecoach {
namespace {

constexpr absl::string_view kBearer = "Bearer ";

absl::StatusOr<PeerIdentity> OfToken(TokenFile& tokens, const Callers::Metadata& metadata) {
  const auto found = metadata.find("authorization");
  const absl::string_view given =
      found == metadata.end() ? absl::string_view()
                              : absl::string_view(found->second.data(), found->second.size());
  if (!absl::StartsWithIgnoreCase(given, kBearer)) {
    return absl::UnauthenticatedError(
        "the caller shows neither a certificate nor a token: call with --grpc-server-cert and "
        "--grpc-server-key, or with --token-file");
  }
  const std::optional<TokenLine> line =
      tokens.Find(Sha256Hex(std::string(given.substr(kBearer.size()))));
  if (!line.has_value()) {
    return absl::UnauthenticatedError(
        "the caller's token is not known: its digest is in no line of this server's --token-file, "
        "or the file cannot be used now");
  }
  return PeerIdentity{line->marked ? PeerRole::kOperator : PeerRole::kUser, line->name};
}

}  // namespace

absl::StatusOr<std::unique_ptr<Callers>> Callers::Open(const std::string& token_file) {
  if (token_file.empty()) return std::make_unique<Callers>();
  ASSIGN_OR_RETURN(auto tokens, TokenFile::Open(kUserTokens, token_file));
  return std::unique_ptr<Callers>(new Callers(std::move(tokens)));
}

Caller Callers::Of(const grpc::AuthContext& context, const Metadata& metadata) const {
  const bool certificate = !context.FindPropertyValues(GRPC_X509_PEM_CERT_PROPERTY_NAME).empty();
  if (tokens_ != nullptr && !certificate) return {OfToken(*tokens_, metadata), "", true};
  Caller caller{PeerOf(context), ""};
  for (const grpc::string_ref& name : context.FindPropertyValues(GRPC_X509_CN_PROPERTY_NAME)) {
    caller.common_name.assign(name.data(), name.size());
  }
  return caller;
}

}  // namespace stagecoach
