// layer_norm over the width, epsilon 1e-5. Parameters: weight [width], bias [width].
#ifndef STAGECOACH_NETWORK_LAYERS_LAYER_NORM_H_
#define STAGECOACH_NETWORK_LAYERS_LAYER_NORM_H_

namespace stagecoach {

struct LayerNormSpec {
  static constexpr const char* kKind = "layer_norm";
  template <typename Visitor>
  void Visit(Visitor&) {}
};

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_LAYERS_LAYER_NORM_H_
