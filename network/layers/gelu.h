// gelu by itself, tanh form.
#ifndef STAGECOACH_NETWORK_LAYERS_GELU_H_
#define STAGECOACH_NETWORK_LAYERS_GELU_H_

namespace stagecoach {

struct GeluSpec {
  static constexpr const char* kKind = "gelu";
  template <typename Visitor>
  void Visit(Visitor&) {}
};

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_LAYERS_GELU_H_
