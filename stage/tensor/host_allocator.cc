// Host memory; cached because what goes back to the kernel has to be faulted in again.
#include <cstdlib>

#include "stage/tensor/caching_allocator.h"

namespace stagecoach {
namespace {

constexpr int64_t kAlignment = 64;

class HostMemory final : public MemorySource {
 public:
  std::byte* Take(int64_t bytes) override {
    return static_cast<std::byte*>(std::aligned_alloc(kAlignment, static_cast<size_t>(bytes)));
  }
  void Give(std::byte* data) override { std::free(data); }
  std::string Refusal() const override { return "the system refused"; }
  std::string Explain(const MemoryUse&) const override { return ""; }
};

}  // namespace

std::unique_ptr<Allocator> MakeHostAllocator(int64_t limit_bytes) {
  return MakeCachingAllocator(std::make_shared<HostMemory>(), limit_bytes, kAlignment);
}

}  // namespace stagecoach
