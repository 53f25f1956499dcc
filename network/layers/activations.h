// Activations by themselves: relu, gelu, silu. No parameters.
#ifndef STAGECOACH_NETWORK_LAYERS_ACTIVATIONS_H_
#define STAGECOACH_NETWORK_LAYERS_ACTIVATIONS_H_

namespace stagecoach {

// relu by itself: y = max(x, 0).
struct ReluSpec {
  static constexpr const char* kKind = "relu";
  template <typename Visitor>
  void Visit(Visitor&) {}
};

// gelu by itself, in the tanh form or exact, by the error function.
struct GeluSpec {
  static constexpr const char* kKind = "gelu";
  bool exact = false;
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Flag("exact", exact);
  }
};

// silu by itself: y = x / (1 + exp(-x)).
struct SiluSpec {
  static constexpr const char* kKind = "silu";
  template <typename Visitor>
  void Visit(Visitor&) {}
};

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_LAYERS_ACTIVATIONS_H_
