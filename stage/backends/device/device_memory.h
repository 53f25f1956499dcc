// Memory of a card and pinned memory of its host, as allocators. They are cached, as allocating
// either makes the card wait. They are accounted by kind, and their errors say who holds what.
// Ownership: buffers share the api, so they may outlive the allocators.
// Threads:   as Allocator; any thread, as each call makes the card current.
// Units and shapes: device memory is 256-byte aligned and accounted in 512 bytes, pinned memory in
//            pages. Work that was queued before may still read a released buffer. That is fine for
//            device memory as long as all work is queued in one order on one stream. Pinned memory
//            must be held until its copy has run (LinkStaging does).
// Errors:    RESOURCE_EXHAUSTED naming kind, size, use by kind, limit and the card's free memory.
#ifndef STAGECOACH_STAGE_BACKENDS_DEVICE_DEVICE_MEMORY_H_
#define STAGECOACH_STAGE_BACKENDS_DEVICE_DEVICE_MEMORY_H_

#include <memory>

#include "stage/backends/device/device_error.h"
#include "stage/tensor/caching_allocator.h"

namespace stagecoach {

// Call it at the start, with the card current. If the card has less free than the limit, it returns
// RESOURCE_EXHAUSTED with limit, free and total bytes. So processes that share a card fail at once
// and not in the first step. 0: no limit, always OK.
absl::Status CheckMemoryLimit(DeviceApi& api, int ordinal, int64_t limit_bytes);

// limit_bytes 0: all of the card's memory. Errors except "out of memory" are noted in `fault`.
std::unique_ptr<Allocator> MakeDeviceAllocator(std::shared_ptr<DeviceApi> api, int ordinal,
                                               int64_t limit_bytes,
                                               std::shared_ptr<DeviceFault> fault,
                                               Reuse reuse = Reuse::kLast);
std::unique_ptr<Allocator> MakePinnedAllocator(std::shared_ptr<DeviceApi> api, int ordinal,
                                               std::shared_ptr<DeviceFault> fault);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_BACKENDS_DEVICE_DEVICE_MEMORY_H_
