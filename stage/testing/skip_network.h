// A small network with everything that a chain of layers lacks: a layer with two outputs, values
// that bypass layers and cuts, one that two layers read, and an input of the data source that a
// later layer reads again. Once as six layers, and once as one layer with the same calls.
#ifndef STAGECOACH_STAGE_TESTING_SKIP_NETWORK_H_
#define STAGECOACH_STAGE_TESTING_SKIP_NETWORK_H_

#include <utility>
#include <vector>

#include "base/errors/check.h"
#include "network/network_builder.h"
#include "network/objective_kind.h"
#include "operations/linear.h"
#include "operations/pointwise/dropout.h"

namespace stagecoach {

inline constexpr int64_t kSkipContext = 4, kSkipVocabulary = 8, kSkipWidth = 8;

// The layers' calculations; all functions take and return values of one layer.
class SkipLayers {
 public:
  explicit SkipLayers(LayerBuilder& builder) : builder_(builder) {}

  ValueId Embed(ValueId tokens) {
    const ValueId token = builder_.Weight({}, "token", {kSkipVocabulary, kSkipWidth}, 0.5);
    const ValueId position = builder_.Weight({}, "position", {kSkipContext, kSkipWidth}, 0.5);
    return Emit("embedding", {}, {tokens, token, position});
  }
  ValueId Linear(ValueId x, int64_t out = kSkipWidth) {
    const ValueId weight = builder_.Weight({}, "weight", {out, kSkipWidth}, 0.3);
    return Emit("linear", ToAttributes(LinearAttributes{}), {x, weight});
  }
  ValueId Add(ValueId a, ValueId b) { return Emit("add", {}, {a, b}); }
  ValueId Gelu(ValueId x) { return Emit("gelu", {}, {x}); }

 private:
  ValueId Emit(const char* operation, Attributes attributes, std::vector<ValueId> inputs) {
    return builder_.writer().Emit(operation, std::move(attributes), std::move(inputs))[0];
  }
  LayerBuilder& builder_;
};

using SkipValues = std::vector<ValueId>;

inline std::vector<WireId> AddSkipLayer(NetworkBuilder& network, const std::vector<WireId>& inputs,
                                        SkipValues (*write)(SkipLayers, const SkipValues&)) {
  auto outputs = network.Add(
      {"layer", "layer", "layer"}, inputs,
      [write](const SkipValues& values, LayerBuilder& builder) -> absl::StatusOr<SkipValues> {
        return write(SkipLayers(builder), values);
      });
  CHECK_OK(outputs.status());
  return *outputs;
}

// The layers, each in one line, so that the network of one layer can write the same calls.
inline SkipValues SkipEmbed(SkipLayers l, const SkipValues& in) { return {l.Embed(in[0])}; }
inline SkipValues SkipFork(SkipLayers l, const SkipValues& in) {
  const ValueId y = l.Linear(in[0]);
  return {y, l.Gelu(y)};
}
inline SkipValues SkipMiddle(SkipLayers l, const SkipValues& in) {
  return {l.Gelu(l.Linear(in[0]))};
}
inline SkipValues SkipReadAgain(SkipLayers l, const SkipValues& in) {
  return {l.Add(in[0], l.Embed(in[1]))};
}
inline SkipValues SkipJoin(SkipLayers l, const SkipValues& in) { return {l.Add(in[0], in[1])}; }
inline SkipValues SkipHead(SkipLayers l, const SkipValues& in) {
  return {l.Linear(l.Add(in[0], in[1]), kSkipVocabulary)};
}

inline Network MakeSkipNetwork(bool one_layer, Precision precision = Precision::kFloat32,
                               const KindSpec& objective = {}) {
  NetworkBuilder network(0.02, {});
  const ValueType ids{Element::kIds, Leading::kSamples, {kSkipContext}};
  const WireId tokens = network.Input("tokens", ids, kSkipVocabulary);
  const WireId targets = network.Input("targets", ids, kSkipVocabulary);
  WireId logits;
  if (one_layer) {
    logits = AddSkipLayer(network, {tokens}, [](SkipLayers l, const SkipValues& in) {
      const SkipValues x = SkipEmbed(l, in), forked = SkipFork(l, x);
      const SkipValues middle = SkipMiddle(l, {forked[0]});
      const SkipValues again = SkipReadAgain(l, {middle[0], in[0]});
      return SkipHead(l, {SkipJoin(l, {again[0], forked[1]})[0], x[0]});
    })[0];
  } else {
    const WireId x = AddSkipLayer(network, {tokens}, SkipEmbed)[0];
    const std::vector<WireId> forked = AddSkipLayer(network, {x}, SkipFork);
    const WireId middle = AddSkipLayer(network, {forked[0]}, SkipMiddle)[0];
    const WireId again = AddSkipLayer(network, {middle, tokens}, SkipReadAgain)[0];
    const WireId joined = AddSkipLayer(network, {again, forked[1]}, SkipJoin)[0];
    logits = AddSkipLayer(network, {joined, x}, SkipHead)[0];
  }
  auto finished = network.Finish({.output = logits, .targets = targets}, "network");
  CHECK_OK(finished.status());
  CHECK_OK(SetObjective(objective, "objective", &*finished));
  finished->precision = precision;
  return *std::move(finished);
}

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_TESTING_SKIP_NETWORK_H_
