#include "stage/backends/cuda/kernels/attention/attention.h"

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "stage/backends/cuda/cudnn/attention/attention_operands.h"
#include "stage/backends/cuda/element_types.h"
#include "stage/backends/cuda/kernel_list.h"
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

AttentionKernelShape KernelShapeOf(const AttentionShape& shape) {
  CHECK(shape.heads > 0 && shape.width % shape.heads == 0) << "heads must divide the width";
  CHECK_EQ(shape.heads % shape.keys(), 0) << "key heads must divide the heads";
  AttentionKernelShape kernel = {shape.sequences,        shape.context,      shape.heads,
                                 shape.keys(),           shape.head_width(), DropoutRule{0, 1.0f},
                                 StreamOf(shape.stream), shape.full};
  if (shape.dropout > 0.0) kernel.rule = RuleOf(shape.dropout);
  return kernel;
}

// Whether own kernels are to compute it: neither did a library, nor is anything noted against it.
template <typename Args>
bool IsForOwnKernels(KernelBackend& backend, const Args& args, const char* what) {
  const absl::StatusOr<bool> queued = backend.AttendByLibrary(args);
  if (!queued.ok()) {
    backend.NoteStatus(queued.status(), what);
    return false;
  }
  if (*queued) return false;
  if (args.shape.head_width() <= kMaxHeadWidth) return true;
  backend.NoteStatus(HeadsTooWide(args.shape.head_width()), what);
  return false;
}

absl::StatusOr<Kernel> Forward(KernelBackend& backend, const Call& call, const CallTypes& types,
                               DType) {
  const auto attributes = AttributesOf<AttentionAttributes>(call);
  return Kernel([&backend, attributes, qkv = types.inputs[0]](const KernelContext& context,
                                                              const KernelArguments& a) {
    constexpr char kWhat[] = "attention";
    const AttentionForwardArgs args = {ShapeOfAttention(attributes, qkv, context), a.inputs[0],
                                       a.outputs[0], a.outputs[1]};
    if (!IsForOwnKernels(backend, args, kWhat)) return;
    WithType(TypeOf(kWhat, {&args.qkv, &args.out}), [&]<typename T>(T) {
      backend.Note(Attention(backend.Begin(), KernelShapeOf(args.shape), args.qkv.data<T>(),
                             args.out.data<T>(), args.log_sum_exp.data<float>()),
                   kWhat);
    });
  });
}

absl::StatusOr<Kernel> Gradient(KernelBackend& backend, const Call& call, const CallTypes& types,
                                DType) {
  const auto attributes = AttributesOf<AttentionAttributes>(call);
  return Kernel([&backend, attributes, qkv = types.inputs[1]](const KernelContext& context,
                                                              const KernelArguments& a) {
    constexpr char kWhat[] = "attention_gradient";
    const AttentionBackwardArgs args = {ShapeOfAttention(attributes, qkv, context),
                                        a.inputs[0],
                                        a.inputs[1],
                                        a.inputs[2],
                                        a.inputs[3],
                                        a.outputs[0]};
    if (!IsForOwnKernels(backend, args, kWhat)) return;
    const DType type = TypeOf(kWhat, {&args.d_out, &args.qkv, &args.out, &args.d_qkv});
    WithType(type, [&]<typename T>(T) {
      backend.Note(AttentionBackward(backend.Begin(), KernelShapeOf(args.shape),
                                     args.d_out.data<T>(), args.qkv.data<T>(), args.out.data<T>(),
                                     args.log_sum_exp.data<float>(), args.d_qkv.data<T>()),
                   kWhat);
    });
  });
}

}  // namespace

KernelList AttentionKernels() { return {{"attention", Forward}, {"attention_gradient", Gradient}}; }

}  // namespace stagecoach::cuda
