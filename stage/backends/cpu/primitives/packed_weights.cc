#include "stage/backends/cpu/primitives/packed_weights.h"

#include "base/errors/check.h"

namespace stagecoach::cpu {

void PackedWeights::Keep(const Kept& kept) {
  kept_ = kept;
  std::erase_if(entries_, [&kept](const auto& entry) {
    return std::holds_alternative<ProductPacking>(entry.first.second) ? !kept.products
                                                                      : !kept.convolutions;
  });
}

bool PackedWeights::Keeps(const Tensor& weight, const WeightPacking& packing) const {
  return std::holds_alternative<ProductPacking>(packing) ? KeepsProduct(weight)
                                                         : KeepsConvolution(weight);
}

const float* PackedWeights::Get(const Tensor& weight, const WeightPacking& packing, int64_t bytes,
                                absl::FunctionRef<void(float* packed)> pack) {
  const uint64_t version = weight.buffer()->version();
  CHECK(Keeps(weight, packing)) << "packed weight of version " << version;
  const Key key(weight.buffer().get(), packing);
  auto found = entries_.find(key);
  if (found == entries_.end()) {
    std::erase_if(entries_, [](const auto& entry) { return entry.second.of.expired(); });
    auto room = allocator_->Allocate(bytes, MemoryKind::kWorkspace);
    if (!room.ok()) {
      if (status_.ok()) status_ = room.status();
      return nullptr;
    }
    found = entries_.emplace(key, Entry{.packed = *std::move(room)}).first;
  }
  Entry& entry = found->second;
  auto* const packed = reinterpret_cast<float*>(entry.packed->data());
  if (entry.version != version) {
    pack(packed);
    entry.version = version;
    entry.of = weight.buffer();
    ++made_;
  }
  return packed;
}

void PackedWeights::Clear() {
  entries_.clear();
  kept_ = kept_at_first_;
  status_ = absl::OkStatus();
}

}  // namespace stagecoach::cpu
