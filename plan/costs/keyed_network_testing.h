// For tests: a network whose attentions have keys.
#ifndef STAGECOACH_PLAN_COSTS_KEYED_NETWORK_TESTING_H_
#define STAGECOACH_PLAN_COSTS_KEYED_NETWORK_TESTING_H_

#include <vector>

#include "base/errors/check.h"
#include "network/layer_builder.h"
#include "network/network_builder.h"
#include "network/objective_kind.h"
#include "operations/attention/attention.h"
#include "operations/attention/cross_attention.h"
#include "operations/linear.h"

namespace stagecoach {

inline constexpr int64_t kKeyedRows = 128, kKeyedColumns = 640, kKeyedWidth = 16;

// Layer 0: causal attention of documents in contexts of kKeyedRows. Layer 1: attention of its rows
// to kKeyedColumns columns of another sequence.
inline Network MakeKeyedNetwork() {
  NetworkBuilder network(0.02, {});
  const auto ids = [](Shape shape) {
    return ValueType{Element::kIds, Leading::kSamples, std::move(shape)};
  };
  const WireId x = network.Input("x", ActivationType({kKeyedRows, kKeyedWidth}), 0);
  const WireId other = network.Input("other", ActivationType({kKeyedColumns, kKeyedWidth}), 0);
  const WireId starts = network.Input("starts", ids({kKeyedRows}), kKeyedRows);
  const WireId lengths = network.Input("lengths", ids({}), kKeyedColumns + 1);
  const WireId targets = network.Input("targets", ids({kKeyedRows}), kKeyedWidth);
  using Values = std::vector<ValueId>;
  const auto linear = [](LayerBuilder& b, const char* name, ValueId x, int64_t width) {
    const ValueId weight = b.Weight({}, name, {width, kKeyedWidth}, 0.1);
    return b.writer().Emit("linear", ToAttributes(LinearAttributes{}), {x, weight})[0];
  };
  const auto documents = network.Add(
      {"documents", "documents", "documents"}, {x, starts},
      [&](const Values& in, LayerBuilder& b) -> absl::StatusOr<Values> {
        const ValueId qkv = linear(b, "qkv", in[0], 3 * kKeyedWidth);
        return Values{b.writer().Emit("attention", ToAttributes(AttentionAttributes{.heads = 2}),
                                      {qkv, in[1]})[0]};
      });
  CHECK_OK(documents.status());
  const auto crossed =
      network.Add({"crossed", "crossed", "crossed"}, {(*documents)[0], other, lengths},
                  [&](const Values& in, LayerBuilder& b) -> absl::StatusOr<Values> {
                    const ValueId kv = linear(b, "kv", in[1], 2 * kKeyedWidth);
                    return Values{b.writer().Emit(
                        "cross_attention", ToAttributes(CrossAttentionAttributes{.heads = 2}),
                        {in[0], kv, in[2]})[0]};
                  });
  CHECK_OK(crossed.status());
  auto finished = network.Finish({.output = (*crossed)[0], .targets = targets}, "network");
  CHECK_OK(finished.status());
  CHECK_OK(SetObjective({}, "objective", &*finished));
  finished->precision = Precision::kBfloat16;
  return *std::move(finished);
}

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_COSTS_KEYED_NETWORK_TESTING_H_
