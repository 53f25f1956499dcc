// Channels and credentials for the programs' own connections: keepalive on both sides, capped
// reconnects (docs/ARCHITECTURE.md, "Deadlines"), TX zero-copy off.
#ifndef STAGECOACH_SERVICES_COMMON_GRPC_GRPC_CHANNEL_H_
#define STAGECOACH_SERVICES_COMMON_GRPC_GRPC_CHANNEL_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "services/common/process/server_flags.h"

namespace grpc {
class Channel;
class ChannelCredentials;
class Status;
}  // namespace grpc

namespace stagecoach {

// A client's credentials, of the files as they are now, with its token if it has one. Servers use
// tls_identity.h. Insecure without use_ssl. NOT_FOUND names a file that cannot be read,
// FAILED_PRECONDITION one that no peer would accept (tls_check.h). INVALID_ARGUMENT: a malformed
// token, a token without TLS, which would expose it, or a token beside a certificate.
absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> MakeChannelCredentials(
    const TlsFlags& tls);

// The longest message between coordinator and stage: traces, logs, and networks of many different
// layers.
inline constexpr int kControlMessageBytes = 32 << 20;

// Between coordinator and stage: a dead peer is noticed within two seconds. Each channel has a
// connection of its own.
std::shared_ptr<grpc::Channel> MakeControlChannel(
    const std::string& address, const std::shared_ptr<grpc::ChannelCredentials>& credentials);

// Whether another caller may get another answer. A server knows a caller by the connection's
// certificate. That may have been exchanged since, so the next try needs a new channel.
bool RefusesCaller(const grpc::Status& answer);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_GRPC_GRPC_CHANNEL_H_
