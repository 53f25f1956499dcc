#include "stage/backends/cuda/kernel_backend.h"

#include <utility>

#include "base/errors/check.h"
#include "base/errors/status.h"
#include "devices/card/describe.h"
#include "stage/backends/cuda/drawing_calls.h"
#include "stage/backends/cuda/element_types.h"
#include "stage/backends/cuda/kernel_list.h"
#include "stage/backends/cuda/kernels.h"

namespace stagecoach::cuda {

STAGECOACH_LISTED(Giver<KernelList>, Kernels, STAGECOACH_OPERATIONS)

const KernelTable<KernelBackend>& Kernels() {
  static const auto* const table = new KernelTable<KernelBackend>("cuda", CallEach(kListedKernels));
  return *table;
}

absl::StatusOr<CallDescription> KernelBackend::Describe(const Call& call, const CallTypes& types,
                                                        int64_t samples, DType activation) {
  RETURN_IF_ERROR(Kernels().Check(call));
  return DescribeOnCard(Card().value_or(CardProfile{}), call, types, samples,
                        PrecisionOf(activation));
}

std::vector<std::string> KernelBackend::WithoutKernels() const {
  return Kernels().WithoutKernels();
}

absl::StatusOr<Kernel> KernelBackend::Prepare(const Call& call, const CallTypes& types,
                                              DType activation) {
  ASSIGN_OR_RETURN(Kernel kernel, Kernels().Prepare(*this, call, types, activation));
  // What takes many calls at once settles the queue itself.
  if (queue_ == nullptr || Kernels().AllAtOnce(call.operation) != nullptr) return kernel;
  return queue_->Wrap(std::move(kernel), call.operation, Draws(call, types));
}

absl::StatusOr<KernelOfAll> KernelBackend::PrepareAll(std::span<const Call> calls,
                                                      std::span<const CallTypes> types,
                                                      DType activation) {
  const auto all = Kernels().AllAtOnce(calls[0].operation);
  return all == nullptr ? Backend::PrepareAll(calls, types, activation) : all(*this, calls);
}

void KernelBackend::BeginCalls() {
  if (queue_ != nullptr) queue_->BeginCalls();
}

void KernelBackend::EndCalls() {
  if (queue_ != nullptr) queue_->EndCalls();
}

// Products in another type are other launches.
void KernelBackend::SetPrecision(Precision precision) {
  if (queue_ != nullptr) queue_->Forget();
  precision_ = precision;
}

Precision KernelBackend::PrecisionOf(DType type) const {
  if (type == DType::kBF16) return Precision::kBfloat16;
  return precision_ == Precision::kTensorFloat32 ? Precision::kTensorFloat32 : Precision::kFloat32;
}

MatmulType KernelBackend::ProductType(DType type) const {
  switch (PrecisionOf(type)) {
    case Precision::kFloat32:
      return MatmulType::kFloat32;
    case Precision::kTensorFloat32:
      return MatmulType::kTensorFloat32;
    case Precision::kBfloat16:
      return MatmulType::kBfloat16;
  }
  return MatmulType::kFloat32;  // not reached: the switch is exhaustive
}

void KernelBackend::Fill(const Tensor& tensor, float value) {
  WithType(TypeOf("Fill", {&tensor}), [&]<typename T>(T) {
    Note(cuda::Fill(Begin(), tensor.data<T>(), value, tensor.elements()), "Fill");
  });
}

void KernelBackend::Convert(const Tensor& source, const Tensor& target) {
  constexpr char kWhat[] = "Convert";
  CHECK_EQ(source.elements(), target.elements()) << kWhat;
  WithType(TypeOf(kWhat, {&source}), [&]<typename From>(From) {
    WithType(TypeOf(kWhat, {&target}), [&]<typename To>(To) {
      Note(cuda::Convert(Begin(), source.data<From>(), target.data<To>(), source.elements()),
           kWhat);
    });
  });
}

}  // namespace stagecoach::cuda
