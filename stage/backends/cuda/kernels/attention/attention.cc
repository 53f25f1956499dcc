#include "stage/backends/cuda/kernels/attention/attention.h"

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "stage/backends/cuda/cudnn/attention/attention_operands.h"
#include "stage/backends/cuda/element_types.h"
#include "stage/backends/cuda/kernel_list.h"
#include "stage/backends/cuda/kernels/attention/attention_calls.h"
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

AttentionKernelShape KernelShapeOf(const AttentionForm& form, const AttentionInputs& inputs) {
  AttentionKernelShape kernel = {.sequences = form.sequences,
                                 .rows = form.rows,
                                 .columns = form.columns,
                                 .heads = form.heads,
                                 .key_heads = form.key_heads,
                                 .head_width = form.head_width,
                                 .query_stride = form.query_stride(),
                                 .key_stride = form.key_stride(),
                                 .rule = DropoutRule{0, 1.0f},
                                 .random = StreamOf(form.stream),
                                 .full = form.full,
                                 .cross = form.cross,
                                 .keys = inputs.ids()};
  if (form.dropout > 0.0) kernel.rule = RuleOf(form.dropout);
  return kernel;
}

template <typename T>
AttentionPointers<T> PointersOf(const AttentionForm& form, const Tensor& q, const Tensor& kv) {
  const AttentionParts<T> parts = PartsOf<T>(form, q, kv);
  return {parts.queries, parts.keys, parts.values};
}

// Whether a library did it, or refused it with an error, which is noted.
template <typename Args>
bool IsDoneByLibrary(KernelBackend& backend, const Args& args, const char* what) {
  const absl::StatusOr<bool> queued = backend.AttendByLibrary(args);
  if (!queued.ok()) backend.NoteStatus(queued.status(), what);
  return !queued.ok() || *queued;
}

bool IsTooWide(KernelBackend& backend, const AttentionForm& form, const char* what) {
  if (form.head_width <= kMaxHeadWidth) return false;
  backend.NoteStatus(HeadsTooWide(form.head_width), what);
  return true;
}

// A library is asked for attention in which every column exists.
absl::StatusOr<Kernel> Forward(KernelBackend& backend, const Call& call, const CallTypes& types,
                               DType) {
  const auto attributes = AttributesOf<AttentionAttributes>(call);
  return Kernel([&backend, attributes, type = types.inputs[0]](const KernelContext& context,
                                                               const KernelArguments& a) {
    constexpr char kWhat[] = "attention";
    const Tensor &qkv = a.inputs[0], &out = a.outputs[0], &log_sum_exp = a.outputs[1];
    const Tensor* const keys = a.inputs.size() > 1 ? &a.inputs[1] : nullptr;
    if (keys == nullptr) {
      const AttentionForwardArgs args = {ShapeOfAttention(attributes, type, context), qkv, out,
                                         log_sum_exp};
      if (IsDoneByLibrary(backend, args, kWhat)) return;
    }
    RunAttention(backend, kWhat, FormOfAttention(attributes, type, context), {qkv, qkv, keys}, out,
                 log_sum_exp);
  });
}

absl::StatusOr<Kernel> Gradient(KernelBackend& backend, const Call& call, const CallTypes& types,
                                DType) {
  const auto attributes = AttributesOf<AttentionAttributes>(call);
  return Kernel([&backend, attributes, type = types.inputs[1]](const KernelContext& context,
                                                               const KernelArguments& a) {
    constexpr char kWhat[] = "attention_gradient";
    const Tensor &qkv = a.inputs[1], &d_qkv = a.outputs[0];
    const Tensor* const keys = a.inputs.size() > 4 ? &a.inputs[4] : nullptr;
    if (keys == nullptr) {
      const AttentionBackwardArgs args = {ShapeOfAttention(attributes, type, context),
                                          a.inputs[0],
                                          qkv,
                                          a.inputs[2],
                                          a.inputs[3],
                                          d_qkv};
      if (IsDoneByLibrary(backend, args, kWhat)) return;
    }
    RunAttentionGradient(backend, kWhat, FormOfAttention(attributes, type, context),
                         {qkv, qkv, keys}, {a.inputs[0], a.inputs[2], a.inputs[3], d_qkv, d_qkv});
  });
}

}  // namespace

void RunAttention(KernelBackend& backend, const char* what, const AttentionForm& form,
                  const AttentionInputs& inputs, const Tensor& out, const Tensor& log_sum_exp) {
  if (IsTooWide(backend, form, what)) return;
  WithType(TypeOf(what, {&inputs.q, &inputs.kv, &out}), [&]<typename T>(T) {
    backend.Note(Attention(backend.Begin(), KernelShapeOf(form, inputs),
                           PointersOf<const T>(form, inputs.q, inputs.kv), out.data<T>(),
                           log_sum_exp.data<float>()),
                 what);
  });
}

void RunAttentionGradient(KernelBackend& backend, const char* what, const AttentionForm& form,
                          const AttentionInputs& inputs, const AttentionGradientTensors& tensors) {
  if (IsTooWide(backend, form, what)) return;
  const DType type = TypeOf(
      what, {&tensors.d_out, &inputs.q, &inputs.kv, &tensors.out, &tensors.d_q, &tensors.d_kv});
  WithType(type, [&]<typename T>(T) {
    backend.Note(
        AttentionBackward(backend.Begin(), KernelShapeOf(form, inputs), tensors.d_out.data<T>(),
                          PointersOf<const T>(form, inputs.q, inputs.kv), tensors.out.data<T>(),
                          tensors.log_sum_exp.data<float>(),
                          PointersOf<T>(form, tensors.d_q, tensors.d_kv)),
        what);
  });
}

KernelList AttentionKernels() { return {{"attention", Forward}, {"attention_gradient", Gradient}}; }

}  // namespace stagecoach::cuda
