#include "stage/layers/kernels.h"

#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "operations/attention.h"
#include "operations/dropout.h"
#include "operations/layer_norm.h"
#include "operations/linear.h"

namespace stagecoach {
namespace {

using Context = KernelContext;
using Arguments = KernelArguments;

template <typename Struct>
Struct Get(const Call& call) {
  absl::StatusOr<Struct> attributes = FromAttributes<Struct>(call.attributes);
  CHECK(attributes.ok()) << call.operation << ": " << attributes.status();
  return *attributes;
}

RandomStream StreamOf(const Context& context, int64_t draw) {
  return {context.run.seed, static_cast<uint32_t>(context.run.step),
          static_cast<uint32_t>(context.run.micro_batch.value), context.layer,
          static_cast<uint32_t>(draw)};
}

Kernel Add(const Call&, const CallTypes&) {
  return [](const Context& context, const Arguments& a) {
    const Tensor& y = a.outputs[0];
    for (const size_t i : {0, 1}) {  // the one whose memory y has gets the other
      if (a.inputs[i].buffer() != y.buffer()) continue;
      return context.backend.Add({a.inputs[1 - i], y});
    }
    context.backend.Fill(y, 0.0f);
    context.backend.Add({a.inputs[0], y});
    context.backend.Add({a.inputs[1], y});
  };
}

AttentionShape ShapeOf(const AttentionAttributes& attributes, const ValueType& qkv,
                       const Context& context) {
  return {.sequences = context.run.sequences,
          .context = qkv.shape[0],
          .heads = attributes.heads,
          .width = qkv.shape[1] / 3,
          .dropout = attributes.dropout,
          .stream = StreamOf(context, attributes.draw)};
}

Kernel Attention(const Call& call, const CallTypes& types) {
  return [attributes = Get<AttentionAttributes>(call), qkv = types.inputs[0]](
             const Context& context, const Arguments& a) {
    context.backend.AttentionForward(
        {ShapeOf(attributes, qkv, context), a.inputs[0], a.outputs[0], a.outputs[1]});
  };
}

Kernel AttentionGradient(const Call& call, const CallTypes& types) {
  return [attributes = Get<AttentionAttributes>(call), qkv = types.inputs[1]](
             const Context& context, const Arguments& a) {
    context.backend.AttentionBackward({ShapeOf(attributes, qkv, context), a.inputs[0], a.inputs[1],
                                       a.inputs[2], a.inputs[3], a.outputs[0]});
  };
}

Kernel Dropout(const Call& call, const CallTypes&) {
  return [attributes = Get<DropoutAttributes>(call)](const Context& context, const Arguments& a) {
    context.backend.Dropout(
        {a.inputs[0], a.outputs[0], attributes.rate, StreamOf(context, attributes.draw)});
  };
}

Kernel Embedding(const Call&, const CallTypes& types) {
  return [length = types.inputs[0].shape[0]](const Context& context, const Arguments& a) {
    context.backend.EmbeddingForward({a.inputs[0], a.inputs[1], a.inputs[2], length, a.outputs[0]});
  };
}

Kernel EmbeddingWeightGradient(const Call&, const CallTypes& types) {
  return [length = types.inputs[0].shape[0]](const Context& context, const Arguments& a) {
    context.backend.EmbeddingBackward({a.inputs[0], a.inputs[1], length, a.adds[0], a.adds[1]});
  };
}

Kernel Gelu(const Call&, const CallTypes&) {
  return [](const Context& context, const Arguments& a) {
    context.backend.GeluForward({a.inputs[0], a.outputs[0]});
  };
}

Kernel GeluGradient(const Call&, const CallTypes&) {
  return [](const Context& context, const Arguments& a) {
    context.backend.GeluBackward({a.inputs[0], a.inputs[1], a.outputs[0]});
  };
}

Kernel LayerNorm(const Call& call, const CallTypes&) {
  return [epsilon = static_cast<float>(Get<LayerNormAttributes>(call).epsilon)](
             const Context& context, const Arguments& a) {
    context.backend.LayerNormForward(
        {a.inputs[0], a.inputs[1], a.inputs[2], epsilon, a.outputs[0], a.outputs[1], a.outputs[2]});
  };
}

Kernel LayerNormInputGradient(const Call& call, const CallTypes&) {
  return [residual = Get<LayerNormGradientAttributes>(call).residual](const Context& context,
                                                                      const Arguments& a) {
    context.backend.LayerNormBackwardInput({a.inputs[0], a.inputs[1], a.inputs[2], a.inputs[3],
                                            a.inputs[4], a.outputs[0],
                                            residual ? a.inputs[5] : Tensor()});
  };
}

Kernel LayerNormWeightGradient(const Call&, const CallTypes&) {
  return [](const Context& context, const Arguments& a) {
    context.backend.LayerNormBackwardWeight(
        {a.inputs[0], a.inputs[1], a.inputs[2], a.inputs[3], a.adds[0], a.adds[1]});
  };
}

Kernel Linear(const Call& call, const CallTypes&) {
  return [attributes = Get<LinearAttributes>(call)](const Context& context, const Arguments& a) {
    LinearForwardArgs args = {.x = a.inputs[0], .weight = a.inputs[1], .y = a.outputs[0]};
    size_t next = 2;
    if (attributes.bias) args.bias = a.inputs[next++];
    if (attributes.residual) args.residual = a.inputs[next];
    if (attributes.gelu) args.activation = a.outputs[1];
    context.backend.LinearForward(args);
  };
}

Kernel LinearInputGradient(const Call& call, const CallTypes&) {
  return [gelu = Get<LinearInputGradientAttributes>(call).gelu](const Context& context,
                                                                const Arguments& a) {
    context.backend.LinearBackwardInput(
        {a.inputs[0], a.inputs[1], gelu ? a.inputs[2] : Tensor(), a.outputs[0]});
  };
}

Kernel LinearWeightGradient(const Call& call, const CallTypes&) {
  return [bias = Get<LinearWeightGradientAttributes>(call).bias](const Context& context,
                                                                 const Arguments& a) {
    context.backend.LinearBackwardWeight(
        {a.inputs[0], a.inputs[1], a.adds[0], bias ? a.adds[1] : Tensor()});
  };
}

using Prepare = Kernel (*)(const Call&, const CallTypes&);

const std::map<std::string, Prepare>& Table() {
  static const auto* const table = new std::map<std::string, Prepare>{
      {"add", Add},
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

absl::StatusOr<Kernel> PrepareKernel(const Call& call, const CallTypes& types) {
  const auto found = Table().find(call.operation);
  if (found == Table().end()) {
    return absl::UnimplementedError(
        absl::StrCat("no kernel for operation \"", call.operation, "\""));
  }
  return found->second(call, types);
}

}  // namespace stagecoach
