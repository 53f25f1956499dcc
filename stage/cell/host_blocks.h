// CopyBlocks: copies values that are a function of their place to a device, through a block of host
// memory. Without blocks a job's large tensors would need as much host memory, which no limit of
// the device counts.
// Threads: the back end's.  Errors: the back end's; on return the copies have run.
#ifndef STAGECOACH_STAGE_CELL_HOST_BLOCKS_H_
#define STAGECOACH_STAGE_CELL_HOST_BLOCKS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "base/errors/status.h"
#include "base/threads/progress.h"
#include "stage/backends/backend.h"

namespace stagecoach {

// Elements; enough for several threads to share in making them.
inline constexpr int64_t kHostBlock = int64_t{1} << 22;

// fill(first, values): sets the values of the elements from `first` on. T: the tensor's type.
template <typename T>
absl::Status CopyBlocks(Backend& backend, const Tensor& target,
                        absl::FunctionRef<void(int64_t first, std::span<T> values)> fill) {
  const int64_t elements = target.elements();
  std::vector<T> block(static_cast<size_t>(std::min(elements, kHostBlock)));
  for (int64_t first = 0; first < elements; first += kHostBlock) {
    const int64_t some = std::min(elements - first, kHostBlock);
    const std::span<T> values = std::span(block).first(static_cast<size_t>(some));
    fill(first, values);
    TickProgress();
    backend.CopyFromHost(std::as_bytes(values),
                         some == elements ? target : target.Slice(first, Shape{some}));
    RETURN_IF_ERROR(backend.Synchronize());  // a queued copy reads the block
  }
  return absl::OkStatus();
}

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_CELL_HOST_BLOCKS_H_
