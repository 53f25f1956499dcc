#include "operations/attention/cross_attention.h"

#include "stage/backends/reference/kernel_list.h"
#include "stage/backends/reference/kernels/attention.h"

namespace stagecoach::reference {
namespace {

absl::StatusOr<Kernel> Forward(ReferenceBackend&, const Call& call, const CallTypes& types, DType) {
  const auto attributes = AttributesOf<CrossAttentionAttributes>(call);
  return Kernel([attributes, q = types.inputs[0], kv = types.inputs[1]](
                    const KernelContext& context, const KernelArguments& a) {
    RunAttention(FormOfCrossAttention(attributes, q, kv, context),
                 {a.inputs[0], a.inputs[1], &a.inputs[2]}, a.outputs[0], a.outputs[1]);
  });
}

absl::StatusOr<Kernel> Gradient(ReferenceBackend&, const Call& call, const CallTypes& types,
                                DType) {
  const auto attributes = AttributesOf<CrossAttentionAttributes>(call);
  return Kernel([attributes, q = types.inputs[1], kv = types.inputs[2]](
                    const KernelContext& context, const KernelArguments& a) {
    RunAttentionGradient(FormOfCrossAttention(attributes, q, kv, context),
                         {a.inputs[1], a.inputs[2], &a.inputs[3]},
                         {a.inputs[0], a.inputs[4], a.inputs[5], a.outputs[0], a.outputs[1]});
  });
}

}  // namespace

KernelList CrossAttentionKernels() {
  return {{"cross_attention", Forward}, {"cross_attention_gradient", Gradient}};
}

}  // namespace stagecoach::reference
