// silu by itself: y = x / (1 + exp(-x)).
#ifndef STAGECOACH_NETWORK_LAYERS_SILU_H_
#define STAGECOACH_NETWORK_LAYERS_SILU_H_

namespace stagecoach {

struct SiluSpec {
  static constexpr const char* kKind = "silu";
  template <typename Visitor>
  void Visit(Visitor&) {}
};

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_LAYERS_SILU_H_
