// Sums of two values, and of shares of a parameter's gradient (operations/pointwise/add.cc,
// operations/norms/batch_norm.h).
#include "base/errors/check.h"
#include "stage/backends/cpu/float_view.h"
#include "stage/backends/cpu/kernel_list.h"
#include "stage/backends/cpu/vector/kernels.h"

namespace stagecoach::cpu {
namespace {

// sum may be left or right.
void Add(CpuBackend& backend, const Tensor& left, const Tensor& right, const Tensor& sum) {
  CHECK(left.elements() == sum.elements() && right.elements() == sum.elements()) << "add";
  const FloatInput a(left), b(right);
  const FloatOutput y(sum);
  backend.ForEachPiece(sum, kElementBlock, 1, 2,
                       [&](int64_t first, int64_t count, const Room& room) {
                         AddRows(a.Read(first, count, room[0]), b.Read(first, count, room[1]),
                                 y.At(first, room[0]), count);
                         y.Finish(first, count, room[0]);
                       });
}

absl::StatusOr<Kernel> Sum(CpuBackend& backend, const Call&, const CallTypes&, DType) {
  return Kernel([&backend](const KernelContext&, const KernelArguments& a) {
    Add(backend, a.inputs[0], a.inputs[1], a.outputs[0]);
  });
}

absl::StatusOr<Kernel> AddShares(CpuBackend& backend, const Call&, const CallTypes&, DType) {
  return Kernel([&backend](const KernelContext&, const KernelArguments& a) {
    for (size_t i = 0; i < a.inputs.size(); ++i) Add(backend, a.adds[i], a.inputs[i], a.adds[i]);
  });
}

}  // namespace

KernelList AddKernels() { return {{"add", Sum}, {"add_to", AddShares}}; }

}  // namespace stagecoach::cpu
