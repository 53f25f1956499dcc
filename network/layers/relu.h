// relu by itself: y = max(x, 0).
#ifndef STAGECOACH_NETWORK_LAYERS_RELU_H_
#define STAGECOACH_NETWORK_LAYERS_RELU_H_

namespace stagecoach {

struct ReluSpec {
  static constexpr const char* kKind = "relu";
  template <typename Visitor>
  void Visit(Visitor&) {}
};

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_LAYERS_RELU_H_
