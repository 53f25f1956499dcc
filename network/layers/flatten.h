// flatten: all extents of a sample as one, so that a linear may follow; the numbers stay in their
// order. No parameters.
#ifndef STAGECOACH_NETWORK_LAYERS_FLATTEN_H_
#define STAGECOACH_NETWORK_LAYERS_FLATTEN_H_

namespace stagecoach {

struct FlattenSpec {
  static constexpr const char* kKind = "flatten";
  template <typename Visitor>
  void Visit(Visitor&) {}
};

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_LAYERS_FLATTEN_H_
