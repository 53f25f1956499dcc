// gelu by itself, in the tanh form or exact, by the error function.
#ifndef STAGECOACH_NETWORK_LAYERS_GELU_H_
#define STAGECOACH_NETWORK_LAYERS_GELU_H_

namespace stagecoach {

struct GeluSpec {
  static constexpr const char* kKind = "gelu";
  bool exact = false;
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Flag("exact", exact);
  }
};

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_LAYERS_GELU_H_
