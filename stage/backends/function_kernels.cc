#include "stage/backends/function_kernels.h"

#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "operations/attention.h"
#include "operations/dropout.h"
#include "operations/embedding.h"
#include "operations/layer_norm.h"
#include "operations/linear.h"
#include "operations/packed_heads.h"
#include "stage/backends/backend.h"

namespace stagecoach {
namespace {

using Context = KernelContext;
using Arguments = KernelArguments;

Kernel Add(Backend& backend, const Call&, const CallTypes&) {
  return [&backend](const Context&, const Arguments& a) {
    const Tensor& y = a.outputs[0];
    for (const size_t i : {0, 1}) {  // the one whose memory y has gets the other
      if (a.inputs[i].buffer() != y.buffer()) continue;
      return backend.Add({a.inputs[1 - i], y});
    }
    backend.Fill(y, 0.0f);
    backend.Add({a.inputs[0], y});
    backend.Add({a.inputs[1], y});
  };
}

Kernel AddTo(Backend& backend, const Call&, const CallTypes&) {
  return [&backend](const Context&, const Arguments& a) {
    for (size_t i = 0; i < a.inputs.size(); ++i) backend.Add({a.inputs[i], a.adds[i]});
  };
}

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

Kernel Dropout(Backend& backend, const Call& call, const CallTypes&) {
  return [&backend, attributes = AttributesOf<DropoutAttributes>(call)](const Context& context,
                                                                        const Arguments& a) {
    backend.Dropout({a.inputs[0], a.outputs[0], attributes.rate, context.Stream(attributes.draw)});
  };
}

Kernel Embedding(Backend& backend, const Call& call, const CallTypes& types) {
  return [&backend, length = types.inputs[0].shape[0],
          only = AttributesOf<EmbeddingAttributes>(call).tokens_only](const Context&,
                                                                      const Arguments& a) {
    const Tensor position = only ? Tensor() : a.inputs[2];
    backend.EmbeddingForward({a.inputs[0], a.inputs[1], position, length, a.outputs[0]});
  };
}

Kernel EmbeddingWeightGradient(Backend& backend, const Call& call, const CallTypes& types) {
  return [&backend, length = types.inputs[0].shape[0],
          only = AttributesOf<EmbeddingAttributes>(call).tokens_only](const Context&,
                                                                      const Arguments& a) {
    const Tensor position = only ? Tensor() : a.adds[1];
    backend.EmbeddingBackward({a.inputs[0], a.inputs[1], length, a.adds[0], position});
  };
}

Kernel Gelu(Backend& backend, const Call&, const CallTypes&) {
  return [&backend](const Context&, const Arguments& a) {
    backend.GeluForward({a.inputs[0], a.outputs[0]});
  };
}

Kernel GeluGradient(Backend& backend, const Call&, const CallTypes&) {
  return [&backend](const Context&, const Arguments& a) {
    backend.GeluBackward({a.inputs[0], a.inputs[1], a.outputs[0]});
  };
}

Kernel LayerNorm(Backend& backend, const Call& call, const CallTypes&) {
  return [&backend, epsilon = static_cast<float>(AttributesOf<LayerNormAttributes>(call).epsilon)](
             const Context&, const Arguments& a) {
    backend.LayerNormForward(
        {a.inputs[0], a.inputs[1], a.inputs[2], epsilon, a.outputs[0], a.outputs[1], a.outputs[2]});
  };
}

Kernel LayerNormInputGradient(Backend& backend, const Call& call, const CallTypes&) {
  return [&backend, residual = AttributesOf<LayerNormGradientAttributes>(call).residual](
             const Context&, const Arguments& a) {
    backend.LayerNormBackwardInput({a.inputs[0], a.inputs[1], a.inputs[2], a.inputs[3], a.inputs[4],
                                    a.outputs[0], residual ? a.inputs[5] : Tensor()});
  };
}

Kernel LayerNormWeightGradient(Backend& backend, const Call&, const CallTypes&) {
  return [&backend](const Context&, const Arguments& a) {
    backend.LayerNormBackwardWeight(
        {a.inputs[0], a.inputs[1], a.inputs[2], a.inputs[3], a.adds[0], a.adds[1]});
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
      {"add", Add},
      {"add_to", AddTo},
      {"attention", Attention},
      {"attention_gradient", AttentionGradient},
      {"dropout", Dropout},
      {"embedding", Embedding},
      {"embedding_weight_gradient", EmbeddingWeightGradient},
      {"gelu", Gelu},
      {"gelu_gradient", GeluGradient},
      {"layer_norm", LayerNorm},
      {"layer_norm_input_gradient", LayerNormInputGradient},
      {"layer_norm_weight_gradient", LayerNormWeightGradient},
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
