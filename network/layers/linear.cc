#include "network/layers/linear.h"

#include "absl/strings/str_cat.h"
#include "network/layer_kind.h"
#include "operations/linear.h"

namespace stagecoach {
namespace {

class LinearLayer final : public LayerKindOf<LinearSpec> {
  absl::StatusOr<ValueId> Write(const LinearSpec& spec, ValueId x, const LayerPlace& place,
                                LayerBuilder& builder) const override {
    const int64_t in = builder.WidthOf(x);
    const double stddev = builder.network().images ? HeStddev(in) : kInitStddev;
    std::vector<ValueId> inputs = {x, builder.Weight(place, "weight", {spec.out, in}, stddev)};
    if (spec.bias) inputs.push_back(builder.Bias(place, "bias", {spec.out}));
    return builder.writer().Emit("linear", ToAttributes(LinearAttributes{.bias = spec.bias}),
                                 std::move(inputs))[0];
  }
  std::string FunctionOf(const LinearSpec& spec) const override {
    return absl::StrCat("linear:", spec.out);
  }
};

}  // namespace

const LayerKind* LinearKind() {
  static const LinearLayer kind;
  return &kind;
}

}  // namespace stagecoach
