#include "network/layers/activations.h"

#include "network/layer_kind.h"

namespace stagecoach {
namespace {

class ReluLayer final : public LayerKindOf<ReluSpec> {
  absl::StatusOr<ValueId> Write(const ReluSpec&, ValueId x, const LayerPlace&,
                                LayerBuilder& builder) const override {
    return builder.writer().Emit("relu", {}, {x})[0];
  }
};

class GeluLayer final : public LayerKindOf<GeluSpec> {
  absl::StatusOr<ValueId> Write(const GeluSpec& spec, ValueId x, const LayerPlace&,
                                LayerBuilder& builder) const override {
    return builder.writer().Emit(spec.exact ? "gelu_erf" : "gelu", {}, {x})[0];
  }
  std::string FunctionOf(const GeluSpec& spec) const override {
    return spec.exact ? "gelu:exact" : "gelu";
  }
};

class SiluLayer final : public LayerKindOf<SiluSpec> {
  absl::StatusOr<ValueId> Write(const SiluSpec&, ValueId x, const LayerPlace&,
                                LayerBuilder& builder) const override {
    return builder.writer().Emit("silu", {}, {x})[0];
  }
};

}  // namespace

const LayerKind* ReluKind() {
  static const ReluLayer kind;
  return &kind;
}

const LayerKind* GeluKind() {
  static const GeluLayer kind;
  return &kind;
}

const LayerKind* SiluKind() {
  static const SiluLayer kind;
  return &kind;
}

}  // namespace stagecoach
