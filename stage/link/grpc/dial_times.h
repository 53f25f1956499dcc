// How long gRPC tries one connection, and how long it waits before the next try. One home for all channels between processes
// of a cluster.
#ifndef STAGECOACH_STAGE_LINK_GRPC_DIAL_TIMES_H_
#define STAGECOACH_STAGE_LINK_GRPC_DIAL_TIMES_H_

#include <grpcpp/support/channel_arguments.h>

namespace stagecoach {

// For TCP, TLS and the first frame of the other side: four round trips, so it bounds the distance. Longer than a second, so
// that a packet which the network lost is sent again within the same try.
inline constexpr int kDialMilliseconds = 2000;

inline void SetDialTimes(grpc::ChannelArguments* arguments) {
  // Its name tells half of it: it is no pause. A try that is refused ends at once, one that nobody answers after this.
  arguments->SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kDialMilliseconds);
  arguments->SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments->SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
}

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_LINK_GRPC_DIAL_TIMES_H_
