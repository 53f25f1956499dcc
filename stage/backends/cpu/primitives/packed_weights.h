// PackedWeights: weights of convolutions and of linear maps in the order that oneDNN reads. A
// weight is packed once for each version of a parameter's values (Buffer::version). That is once a
// step, for forwards, recomputations and gradients of all its micro-batches; and once for all
// tokens that trained weights write.
// Ownership: memory of the back end's allocator, accounted as workspace; the planner counts it
//            (plan/costs/host_memory.h). It is released by Clear, when the cell ends, or by the
//            first new entry after the end of its parameter.
// Threads:   executor thread only. All threads may read the result of Get until the next Get for
//            the same weight.
// Errors:    Get gives null when the allocator refuses and keeps the first such status until Clear,
//            as Workspace does.
#ifndef STAGECOACH_STAGE_BACKENDS_CPU_PRIMITIVES_PACKED_WEIGHTS_H_
#define STAGECOACH_STAGE_BACKENDS_CPU_PRIMITIVES_PACKED_WEIGHTS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <variant>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "stage/backends/cpu/primitives/direct_convolution.h"
#include "stage/backends/cpu/primitives/matmul.h"
#include "stage/tensor/tensor.h"

namespace stagecoach::cpu {

// Of a matrix [k, n], read with `strides` (matmul.h).
struct ProductPacking {
  int64_t k = 0, n = 0;
  Strides strides;
  int order = 0;  // Matmul::packed_order
  friend auto operator<=>(const ProductPacking&, const ProductPacking&) = default;
};
using WeightPacking = std::variant<ConvolutionPacking, ProductPacking>;

class PackedWeights {
 public:
  // Of which weights packings are kept.
  struct Kept {
    bool convolutions = false, products = false;
  };
  // at_first: the setting before the first Keep and after Clear.
  PackedWeights(Allocator* allocator, const Kept& at_first)
      : allocator_(allocator), kept_at_first_(at_first), kept_(at_first) {}

  void Keep(const Kept& kept);
  // Whether a weight's packing can be kept: there is room, and the weight has versions.
  bool KeepsConvolution(const Tensor& weight) const {
    return kept_.convolutions && weight.buffer()->version() != 0;
  }
  bool KeepsProduct(const Tensor& weight) const {
    return kept_.products && weight.buffer()->version() != 0;
  }
  // `weight` in that packing, of `bytes` bytes. If this version was not packed yet, `pack` makes
  // it. CHECKs that the packing is kept: without versions an old one could not be told.
  const float* Get(const Tensor& weight, const WeightPacking& packing, int64_t bytes,
                   absl::FunctionRef<void(float* packed)> pack);
  int64_t made() const { return made_; }  // packings since construction
  const absl::Status& status() const { return status_; }
  void Clear();

 private:
  struct Entry {
    std::weak_ptr<Buffer> of;
    uint64_t version = 0;
    std::shared_ptr<Buffer> packed;
  };
  using Key = std::pair<const Buffer*, WeightPacking>;
  bool Keeps(const Tensor& weight, const WeightPacking& packing) const;

  Allocator* const allocator_;
  const Kept kept_at_first_;
  Kept kept_;
  std::map<Key, Entry> entries_;
  int64_t made_ = 0;
  absl::Status status_;
};

}  // namespace stagecoach::cpu

#endif  // STAGECOACH_STAGE_BACKENDS_CPU_PRIMITIVES_PACKED_WEIGHTS_H_
