#include "network/zoo/mlp.h"

#include "base/errors/field_check.h"
#include "base/errors/status.h"
#include "network/layers/activations.h"
#include "network/layers/flatten.h"
#include "network/layers/linear.h"
#include "network/network_kind.h"
#include "network/zoo/layer_chain.h"

namespace stagecoach {
namespace {

class MlpNetworkKind final : public NetworkKindOf<MlpNetworkSpec> {
  absl::StatusOr<Network> Write(const MlpNetworkSpec& spec,
                                const std::string& path) const override {
    const ImageShape shape{spec.image, spec.classes};
    RETURN_IF_ERROR(CheckImageShape(shape, path));
    if (spec.layers > 1 && spec.hidden == 0) {
      return FieldError(path + ".hidden", "0", "must be >= 1 where there are several layers");
    }
    std::vector<LayerSpec> layers = {FlattenSpec{}};
    for (int64_t i = 1; i < spec.layers; ++i) {
      layers.push_back(LinearSpec{.out = spec.hidden});
      layers.push_back(ReluSpec{});
    }
    layers.push_back(LinearSpec{.out = spec.classes});
    return ChainOnImages(shape, layers, path);
  }
};

}  // namespace

const NetworkKind* MlpNetwork() {
  static const MlpNetworkKind kind;
  return &kind;
}

}  // namespace stagecoach
