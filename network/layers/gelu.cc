#include "network/layers/gelu.h"

#include "network/layer_kind.h"

namespace stagecoach {
namespace {

class GeluLayer final : public LayerKindOf<GeluSpec> {
  absl::StatusOr<ValueId> Write(const GeluSpec& spec, ValueId x, const LayerPlace&,
                                LayerBuilder& builder) const override {
    return builder.writer().Emit(spec.exact ? "gelu_erf" : "gelu", {}, {x})[0];
  }
  std::string FunctionOf(const GeluSpec& spec) const override {
    return spec.exact ? "gelu:exact" : "gelu";
  }
};

}  // namespace

const LayerKind* GeluKind() {
  static const GeluLayer kind;
  return &kind;
}

}  // namespace stagecoach
