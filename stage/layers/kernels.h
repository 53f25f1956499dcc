// Kernels: from a call to the back end's function that computes it.
// Ownership: arguments are borrowed for the call.
// Threads:   executor thread only.
// Errors:    UNIMPLEMENTED for an operation that has no kernel.
#ifndef STAGECOACH_STAGE_LAYERS_KERNELS_H_
#define STAGECOACH_STAGE_LAYERS_KERNELS_H_

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/ids.h"
#include "operations/operation.h"
#include "stage/backends/backend.h"
#include "stage/tensor/tensor.h"

namespace stagecoach {

// Where in the run a forward happens: what random numbers it draws depends on nothing else.
struct ForwardContext {
  uint64_t seed = 0;
  uint64_t step = 0;
  MicroBatchId micro_batch;
  int64_t sequences = 0;  // of this micro-batch
  bool training = true;   // false: dropout is the identity
};

struct KernelContext {
  Backend& backend;
  const ForwardContext& run;
  uint32_t layer = 0;
};

// Tensors that lie elsewhere, in the order of a call's operands.
class Operands {
 public:
  Operands() = default;
  explicit Operands(std::vector<Tensor*> places) : places_(std::move(places)) {}
  const Tensor& operator[](size_t i) const { return *places_[i]; }
  Tensor& place(size_t i) const { return *places_[i]; }

 private:
  std::vector<Tensor*> places_;
};

// Output 0 may have the memory of an input, where the operation allows it.
struct KernelArguments {
  const Operands &inputs, &outputs, &adds;
};

using Kernel = std::function<void(const KernelContext&, const KernelArguments&)>;

absl::StatusOr<Kernel> PrepareKernel(const Call& call, const CallTypes& types);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_LAYERS_KERNELS_H_
