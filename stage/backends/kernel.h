// Kernel: one call of an operation, prepared by a back end, to be run many times.
// Ownership: arguments are borrowed for the call, as by every function of Backend; a kernel borrows
//            the back end that prepared it.
// Threads:   executor thread only.
// Errors:    none of its own: shapes were checked when the kernel was prepared, outputs are there.
//            Errors of the device come back from Backend::Synchronize.
#ifndef STAGECOACH_STAGE_BACKENDS_KERNEL_H_
#define STAGECOACH_STAGE_BACKENDS_KERNEL_H_

#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/numbers/random.h"
#include "operations/updates/update.h"
#include "operations/value_type.h"
#include "stage/tensor/tensor.h"

namespace stagecoach {

// The place of a forward in the run. The random numbers that it draws depend on nothing else.
struct ForwardContext {
  uint64_t seed = 0;
  uint64_t step = 0;
  MicroBatchId micro_batch;
  int64_t sequences = 0;  // of this micro-batch
  Lengths lengths = {};   // of its named extents
  bool training = true;   // false: dropout is the identity

  Binding binding() const { return {sequences, lengths}; }
};

struct KernelContext {
  const ForwardContext& run;
  uint32_t layer = 0;
  const UpdateNumbers* update = nullptr;  // for updates only, which need nothing else

  // `draw`: the number of the layer's stream.
  RandomStream Stream(int64_t draw) const {
    return {run.seed, static_cast<uint32_t>(run.step), static_cast<uint32_t>(run.micro_batch.value),
            layer, static_cast<uint32_t>(draw)};
  }
};

// Tensors that lie elsewhere, in the order of a call's operands.
class Operands {
 public:
  Operands() = default;
  explicit Operands(std::vector<Tensor*> places) : places_(std::move(places)) {}
  size_t size() const { return places_.size(); }
  const Tensor& operator[](size_t i) const { return *places_[i]; }
  Tensor& place(size_t i) const { return *places_[i]; }

 private:
  std::vector<Tensor*> places_;
};

inline Operands PlacesOf(Tensors& tensors) {
  std::vector<Tensor*> places;
  for (Tensor& tensor : tensors) places.push_back(&tensor);
  return Operands(std::move(places));
}

// If the operation allows it, output 0 may have the memory of an input.
struct KernelArguments {
  const Operands &inputs, &outputs, &adds;
};

using Kernel = std::function<void(const KernelContext&, const KernelArguments&)>;
// A kernel for several calls at once, with the arguments of each.
using KernelOfAll = std::function<void(const KernelContext&, std::span<const KernelArguments> all)>;

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_BACKENDS_KERNEL_H_
