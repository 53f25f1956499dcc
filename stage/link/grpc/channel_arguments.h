// The settings of gRPC that all channels between processes of a cluster share. A channel adds only
// its own keepalive and message size.
#ifndef STAGECOACH_STAGE_LINK_GRPC_CHANNEL_ARGUMENTS_H_
#define STAGECOACH_STAGE_LINK_GRPC_CHANNEL_ARGUMENTS_H_

#include <grpcpp/support/channel_arguments.h>

namespace stagecoach {

// Deadline of one connection attempt of gRPC: TCP, TLS and the first frame of the other side. These
// are four round trips, so it bounds the distance. It is longer than a second: a lost packet is
// sent again within the same attempt.
inline constexpr int kDialMilliseconds = 2000;

// Limit of an answer's headers, which carry an error's text. The default in gRPC is 8 KiB. A longer
// error then arrives as RESOURCE_EXHAUSTED, "received initial metadata size exceeds limit". Its own
// code and words are lost.
inline constexpr int kMostAnswerFieldBytes = 64 << 10;

inline void SetCommonArguments(grpc::ChannelArguments* arguments) {
  // Despite its name it is no pause, but a deadline. A refused attempt ends at once, one without an
  // answer after this time.
  arguments->SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kDialMilliseconds);
  arguments->SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments->SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  arguments->SetInt(GRPC_ARG_MAX_METADATA_SIZE, kMostAnswerFieldBytes);
  arguments->SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  arguments->SetInt(GRPC_ARG_TCP_TX_ZEROCOPY_ENABLED, 0);
}

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_LINK_GRPC_CHANNEL_ARGUMENTS_H_
