#include "services/common/grpc/access/callers.h"

#include <grpc/grpc_security_constants.h>
#include <grpcpp/security/auth_context.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "base/errors/status.h"
#include "base/files/hash.h"
#include "services/common/grpc/access/peer_identity.h"

namespace stagecoach {
namespace {

constexpr absl::string_view kBearer = "Bearer ";

// Of the token in a field's value; nothing where there is none.
std::optional<std::string> DigestIn(absl::string_view authorization) {
  if (!absl::StartsWithIgnoreCase(authorization, kBearer)) return std::nullopt;
  return Sha256Hex(std::string(authorization.substr(kBearer.size())));
}

absl::StatusOr<PeerIdentity> OfToken(TokenFile& tokens, const Callers::Metadata& metadata) {
  const auto found = metadata.find("authorization");
  const std::optional<std::string> digest =
      found == metadata.end()
          ? std::nullopt
          : DigestIn(absl::string_view(found->second.data(), found->second.size()));
  if (!digest.has_value()) {
    return absl::UnauthenticatedError(
        "the caller shows neither a certificate nor a token: call with --grpc-server-cert and "
        "--grpc-server-key, or with --token-file");
  }
  const std::optional<TokenLine> line = tokens.Find(*digest);
  if (!line.has_value()) {
    return absl::UnauthenticatedError(
        "the caller's token is not known: its digest is in no line of this server's --token-file, "
        "or the file cannot be used now");
  }
  return PeerIdentity{line->marked ? PeerRole::kOperator : PeerRole::kUser, line->name};
}

}  // namespace

absl::StatusOr<std::unique_ptr<Callers>> Callers::Open(const std::string& token_file,
                                                       std::shared_ptr<TokenGuesses> guesses) {
  if (token_file.empty()) return std::make_unique<Callers>();
  ASSIGN_OR_RETURN(std::shared_ptr<TokenFile> tokens, TokenFile::Open(kUserTokens, token_file));
  if (guesses == nullptr) guesses = std::make_shared<TokenGuesses>();
  return std::unique_ptr<Callers>(new Callers(std::move(tokens), std::move(guesses)));
}

MayAuthorize Callers::CheckOfConnection(const std::string& address) const {
  if (tokens_ == nullptr) return {};
  // let_in: the digest of the token that was let in on the connection last.
  return [tokens = tokens_, guesses = guesses_, address,
          let_in = std::string()](std::string_view authorization) mutable {
    const std::optional<std::string> digest =
        DigestIn(absl::string_view(authorization.data(), authorization.size()));
    if (!digest.has_value() || *digest == let_in) return true;
    if (!guesses->MayTry(address, *digest)) return false;
    if (tokens->Find(*digest).has_value()) {
      let_in = *digest;
    } else {
      guesses->Failed(address, *digest);
    }
    return true;
  };
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
