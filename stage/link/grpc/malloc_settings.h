// Allocator settings for a process that receives large gRPC messages. Without all three, the
// receive path returns its buffers to the kernel and faults them in again for every message. That
// costs more than half of the throughput; one setting alone can make it slower. Call it first in
// main.
#ifndef STAGECOACH_STAGE_LINK_GRPC_MALLOC_SETTINGS_H_
#define STAGECOACH_STAGE_LINK_GRPC_MALLOC_SETTINGS_H_

#include <malloc.h>

namespace stagecoach {

inline void KeepReceiveBuffersMapped() {
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  mallopt(M_TOP_PAD, 64 << 20);
}

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_LINK_GRPC_MALLOC_SETTINGS_H_
