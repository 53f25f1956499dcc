#include "services/common/grpc/grpc_channel.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>
#include <grpcpp/support/status.h>

#include <algorithm>
#include <fstream>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "services/common/http2/frame_watch.h"
#include "services/common/http2/read_watch.h"
#include "services/common/tls/tls_check.h"
#include "stage/link/grpc/channel_arguments.h"

namespace stagecoach {
namespace {

// Files that no peer would accept are refused here, where their names are known.
absl::StatusOr<TlsPems> ReadIdentity(const TlsFlags& tls) {
  ASSIGN_OR_RETURN(TlsPems pems, ReadPems(tls));
  RETURN_IF_ERROR(CheckIdentity(tls, pems));
  return pems;
}

// What ends a connection and what ends a call of it are one limit.
static_assert(FrameWatch::kMostAnswerFieldBytes == kMostAnswerFieldBytes);

constexpr size_t kMostTokenBytes = 4096;  // what metadata may have is not much more

// One word, as a line of its own or without a line's end.
absl::StatusOr<std::string> ReadToken(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(kMostTokenBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad() || (file.gcount() == 0 && !file.eof())) {
    return absl::NotFoundError(absl::StrCat("--token-file=", path, " cannot be read"));
  }
  text.resize(static_cast<size_t>(file.gcount()));
  const std::string token(absl::StripAsciiWhitespace(text));
  const bool printable = std::all_of(token.begin(), token.end(), [](char c) {
    return absl::ascii_isgraph(static_cast<unsigned char>(c));
  });
  if (token.empty() || text.size() > kMostTokenBytes || !printable) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--token-file=", path, ": want the token alone, one word of letters, digits and signs"));
  }
  return token;
}

// Who shows a certificate is held to it, so the token would not count.
absl::Status CheckTokenAlone(const TlsFlags& tls) {
  if (tls.server_cert.empty() && tls.server_key.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--token-file=", tls.token_file,
                   ": a token stands in place of a certificate; leave out --grpc-server-cert and "
                   "--grpc-server-key, or the token"));
}

}  // namespace

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> MakeChannelCredentials(
    const TlsFlags& tls) {
  if (!tls.use_ssl && !tls.token_file.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--token-file=", tls.token_file,
                     ": without --grpc-use-ssl the token could be read on the way"));
  }
  if (!tls.use_ssl) return grpc::InsecureChannelCredentials();
  StartReadWatch();
  if (!tls.token_file.empty()) RETURN_IF_ERROR(CheckTokenAlone(tls));
  ASSIGN_OR_RETURN(TlsPems pems, ReadIdentity(tls));
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = std::move(pems.root);
  if (!tls.token_file.empty()) {
    ASSIGN_OR_RETURN(const std::string token, ReadToken(tls.token_file));
    return grpc::CompositeChannelCredentials(grpc::SslCredentials(options),
                                             grpc::AccessTokenCredentials(token));
  }
  options.pem_private_key = std::move(pems.key);
  options.pem_cert_chain = std::move(pems.cert);
  return grpc::SslCredentials(options);
}

std::shared_ptr<grpc::Channel> MakeControlChannel(
    const std::string& address, const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 1000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 1000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  SetCommonArguments(&arguments);
  // Or a new channel to an address would inherit the connection, and the back-off, of an older one.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetMaxReceiveMessageSize(kControlMessageBytes);
  return grpc::CreateCustomChannel(address, credentials, arguments);
}

bool RefusesCaller(const grpc::Status& answer) {
  return answer.error_code() == grpc::StatusCode::PERMISSION_DENIED ||
         answer.error_code() == grpc::StatusCode::UNAUTHENTICATED;
}

}  // namespace stagecoach
