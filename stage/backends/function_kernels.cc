#include "stage/backends/function_kernels.h"

#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "operations/attention.h"
#include "operations/linear.h"
#include "operations/packed_heads.h"
#include "stage/backends/backend.h"

namespace stagecoach {
namespace {

using Context = KernelContext;
using Arguments = KernelArguments;

AttentionShape ShapeOf(const AttentionAttributes& attributes, const ValueType& qkv,
                       const Context& context) {
  const PackedHeads packed = PackedHeadsOf(qkv, attributes.heads, attributes.key_heads);
  return {.sequences = context.run.sequences,
          .context = packed.context,
          .heads = packed.heads,
          .width = packed.query_width(),
          .dropout = attributes.dropout,
          .stream = context.Stream(attributes.draw),
          .key_heads = packed.key_heads == packed.heads ? 0 : packed.key_heads};
}

Kernel Attention(Backend& backend, const Call& call, const CallTypes& types) {
  return [&backend, attributes = AttributesOf<AttentionAttributes>(call), qkv = types.inputs[0]](
             const Context& context, const Arguments& a) {
    backend.AttentionForward(
        {ShapeOf(attributes, qkv, context), a.inputs[0], a.outputs[0], a.outputs[1]});
  };
}

Kernel AttentionGradient(Backend& backend, const Call& call, const CallTypes& types) {
  return [&backend, attributes = AttributesOf<AttentionAttributes>(call), qkv = types.inputs[1]](
             const Context& context, const Arguments& a) {
    backend.AttentionBackward({ShapeOf(attributes, qkv, context), a.inputs[0], a.inputs[1],
                               a.inputs[2], a.inputs[3], a.outputs[0]});
  };
}

Kernel Linear(Backend& backend, const Call& call, const CallTypes&) {
  return [&backend, attributes = AttributesOf<LinearAttributes>(call)](const Context&,
                                                                       const Arguments& a) {
    LinearForwardArgs args = {.x = a.inputs[0], .weight = a.inputs[1], .y = a.outputs[0]};
    size_t next = 2;
    if (attributes.bias) args.bias = a.inputs[next++];
    if (attributes.residual) args.residual = a.inputs[next];
    if (attributes.gelu) args.activation = a.outputs[1];
    backend.LinearForward(args);
  };
}

Kernel LinearInputGradient(Backend& backend, const Call& call, const CallTypes&) {
  return [&backend, gelu = AttributesOf<LinearInputGradientAttributes>(call).gelu](
             const Context&, const Arguments& a) {
    backend.LinearBackwardInput(
        {a.inputs[0], a.inputs[1], gelu ? a.inputs[2] : Tensor(), a.outputs[0]});
  };
}

Kernel LinearWeightGradient(Backend& backend, const Call& call, const CallTypes&) {
  return [&backend, bias = AttributesOf<LinearWeightGradientAttributes>(call).bias](
             const Context&, const Arguments& a) {
    backend.LinearBackwardWeight(
        {a.inputs[0], a.inputs[1], a.adds[0], bias ? a.adds[1] : Tensor()});
  };
}

using Prepare = Kernel (*)(Backend&, const Call&, const CallTypes&);

const std::map<std::string, Prepare>& Table() {
  static const auto* const table = new std::map<std::string, Prepare>{
      {"attention", Attention},
      {"attention_gradient", AttentionGradient},
      {"linear", Linear},
      {"linear_input_gradient", LinearInputGradient},
      {"linear_weight_gradient", LinearWeightGradient},
  };
  return *table;
}

}  // namespace

std::optional<Kernel> KernelByFunction(Backend& backend, const Call& call, const CallTypes& types) {
  const auto found = Table().find(call.operation);
  if (found == Table().end()) return std::nullopt;
  return found->second(backend, call, types);
}

absl::Status NoKernel(const Call& call, std::string_view back_end) {
  return absl::UnimplementedError(absl::StrCat("the ", std::string(back_end),
                                               " back end has no kernel for operation \"",
                                               call.operation, "\"; use another device"));
}

}  // namespace stagecoach
