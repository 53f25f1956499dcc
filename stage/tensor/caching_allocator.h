// CachingAllocator: an Allocator over any kind of memory. It caches by size, as a training step
// asks for the same few sizes over and over. Every byte is accounted by kind.
// Ownership: buffers share the memory source, so they may outlive the allocator.
// Threads:   as Allocator; the source is called under the allocator's lock.
// Units and shapes: bytes, rounded up to `alignment`. Held and cached memory together fit the
//            limit.
// Errors:    as Allocator, with the source's Explain added.
#ifndef STAGECOACH_STAGE_TENSOR_CACHING_ALLOCATOR_H_
#define STAGECOACH_STAGE_TENSOR_CACHING_ALLOCATOR_H_

#include <memory>
#include <string>

#include "stage/tensor/allocator.h"

namespace stagecoach {

class MemorySource {
 public:
  virtual ~MemorySource() = default;
  virtual std::byte* Take(int64_t bytes) = 0;  // null: refused; caches are emptied then
  virtual void Give(std::byte* data) = 0;
  // The reason of Take's refusal, as in "the system refused".
  virtual std::string Refusal() const = 0;
  // For the end of an out-of-memory message: "", or "; held: parameters 5, ...".
  virtual std::string Explain(const MemoryUse& use) const = 0;
};

// The one of several cached pieces of a size that is handed out.
enum class Reuse {
  kLast,    // the one that came back last: it is the likeliest to be in a processor's caches
  kLowest,  // the one at the lowest address: steps with equal requests then get equal addresses,
            // in whatever order the pieces came back
};

// limit_bytes 0: none. alignment: a power of two that the source's memory has.
std::unique_ptr<Allocator> MakeCachingAllocator(std::shared_ptr<MemorySource> source,
                                                int64_t limit_bytes, int64_t alignment,
                                                Reuse reuse = Reuse::kLast);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_TENSOR_CACHING_ALLOCATOR_H_
