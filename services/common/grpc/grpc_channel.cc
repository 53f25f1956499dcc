#include "services/common/grpc/grpc_channel.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>

#include <utility>

#include "base/status.h"
#include "services/common/grpc/tls_check.h"

namespace stagecoach {
namespace {

// Files that no peer would accept are refused here, where their names are known.
absl::StatusOr<TlsPems> ReadIdentity(const TlsFlags& tls) {
  ASSIGN_OR_RETURN(TlsPems pems, ReadPems(tls));
  RETURN_IF_ERROR(CheckIdentity(tls, pems));
  return pems;
}

}  // namespace

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> MakeChannelCredentials(
    const TlsFlags& tls) {
  if (!tls.use_ssl) return grpc::InsecureChannelCredentials();
  ASSIGN_OR_RETURN(TlsPems pems, ReadIdentity(tls));
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = std::move(pems.root);
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
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  arguments.SetInt(GRPC_ARG_TCP_TX_ZEROCOPY_ENABLED, 0);
  // Or a new channel to an address would inherit the connection, and the back-off, of an older one.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetMaxReceiveMessageSize(kControlMessageBytes);
  return grpc::CreateCustomChannel(address, credentials, arguments);
}

}  // namespace stagecoach
