// CopyTensors: a cell's tensors, as they are now, as a shard in the host's memory. It looks for room
// first, and again on the way, as other processes use the memory too.
// Ownership: the shard owns its bytes; the rest is borrowed for the call.
// Threads:   the executor's.
// Units:     bytes.
// Errors:    RESOURCE_EXHAUSTED: too little memory is available; the back end's. Ticks progress.
#ifndef STAGECOACH_STAGE_SNAPSHOT_TENSOR_COPY_H_
#define STAGECOACH_STAGE_SNAPSHOT_TENSOR_COPY_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "checkpoint/memory_shard.h"
#include "stage/backends/backend.h"
#include "stage/tensor/named_tensor.h"

namespace stagecoach {

// spare: a shard whose memory is reused; it must not be used afterwards. Null: new memory.
absl::StatusOr<MemoryShard> CopyTensors(const ShardLayers& layers,
                                        const std::vector<NamedTensor>& tensors, Backend& backend,
                                        const std::function<int64_t()>& free_bytes,
                                        MemoryShard* spare = nullptr);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_SNAPSHOT_TENSOR_COPY_H_
