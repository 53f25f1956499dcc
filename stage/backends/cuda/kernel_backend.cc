#include "stage/backends/cuda/kernel_backend.h"

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "stage/backends/cuda/element_types.h"
#include "stage/backends/cuda/kernel_list.h"
#include "stage/backends/cuda/kernels.h"
#include "stage/backends/cuda/launch_config.h"
#include "stage/backends/cuda/random_stream.h"

namespace stagecoach::cuda {
namespace {

// A job may ask for it, so it is the job's error and no bug of ours.
absl::Status HeadsTooWide(int64_t head_width) {
  return absl::InvalidArgumentError(absl::StrCat("heads are ", head_width,
                                                 " wide, attention on a card takes ", kMaxHeadWidth,
                                                 " at most; use more heads, or another device"));
}

AttentionKernelShape ShapeOf(const AttentionShape& shape) {
  CHECK(shape.heads > 0 && shape.width % shape.heads == 0) << "heads must divide the width";
  CHECK_EQ(shape.heads % shape.keys(), 0) << "key heads must divide the heads";
  AttentionKernelShape kernel = {shape.sequences,       shape.context,      shape.heads,
                                 shape.keys(),          shape.head_width(), DropoutRule{0, 1.0f},
                                 StreamOf(shape.stream)};
  if (shape.dropout > 0.0) kernel.rule = RuleOf(shape.dropout);
  return kernel;
}

}  // namespace

const KernelTable<KernelBackend>& Kernels() {
  static const auto* const table = new KernelTable<KernelBackend>("cuda", KernelLists());
  return *table;
}

absl::StatusOr<Kernel> KernelBackend::Prepare(const Call& call, const CallTypes& types,
                                              DType activation) {
  return Kernels().Prepare(*this, call, types, activation);
}

void KernelBackend::AttentionForward(const AttentionForwardArgs& args) {
  constexpr char kWhat[] = "AttentionForward";
  const AttentionKernelShape shape = ShapeOf(args.shape);
  if (shape.head_width > kMaxHeadWidth) {
    return fault().NoteStatus(HeadsTooWide(shape.head_width), kWhat);
  }
  WithType(TypeOf(kWhat, {&args.qkv, &args.out}), [&]<typename T>(T) {
    Note(Attention(Begin(), shape, args.qkv.data<T>(), args.out.data<T>(),
                   args.log_sum_exp.data<float>()),
         kWhat);
  });
}

void KernelBackend::AttentionBackward(const AttentionBackwardArgs& args) {
  constexpr char kWhat[] = "AttentionBackward";
  const AttentionKernelShape shape = ShapeOf(args.shape);
  if (shape.head_width > kMaxHeadWidth) {
    return fault().NoteStatus(HeadsTooWide(shape.head_width), kWhat);
  }
  WithType(TypeOf(kWhat, {&args.d_out, &args.qkv, &args.out, &args.d_qkv}), [&]<typename T>(T) {
    Note(cuda::AttentionBackward(Begin(), shape, args.d_out.data<T>(), args.qkv.data<T>(),
                                 args.out.data<T>(), args.log_sum_exp.data<float>(),
                                 args.d_qkv.data<T>()),
         kWhat);
  });
}

void KernelBackend::Fill(const Tensor& tensor, float value) {
  WithType(TypeOf("Fill", {&tensor}), [&]<typename T>(T) {
    Note(cuda::Fill(Begin(), tensor.data<T>(), value, tensor.elements()), "Fill");
  });
}

void KernelBackend::Convert(const Tensor& source, const Tensor& target) {
  constexpr char kWhat[] = "Convert";
  CHECK_EQ(source.elements(), target.elements()) << kWhat;
  const DType from = TypeOf(kWhat, {&source}), to = TypeOf(kWhat, {&target});
  CHECK(from != to) << kWhat << " from " << DTypeName(from) << " to itself";
  if (to == DType::kBF16) {
    Note(cuda::Convert(Begin(), source.data<float>(), target.data<Bf16>(), source.elements()),
         kWhat);
  } else {
    Note(cuda::Convert(Begin(), source.data<Bf16>(), target.data<float>(), source.elements()),
         kWhat);
  }
}

}  // namespace stagecoach::cuda
