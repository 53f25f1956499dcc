// dropout by itself. At rate 0 it adds no operation, but takes its stream of random numbers.
#ifndef STAGECOACH_NETWORK_LAYERS_DROPOUT_H_
#define STAGECOACH_NETWORK_LAYERS_DROPOUT_H_

namespace stagecoach {

struct DropoutSpec {
  static constexpr const char* kKind = "dropout";
  double rate = 0;  // probability of a zero
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Rate("rate", rate);
  }
};

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_LAYERS_DROPOUT_H_
