// LayerRange: consecutive layers of a network, as those of a cell.
#ifndef STAGECOACH_BASE_LAYER_RANGE_H_
#define STAGECOACH_BASE_LAYER_RANGE_H_

namespace stagecoach {

struct LayerRange {
  int first = 0, last = 0;  // [first, last)
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Field("first", first);
    visit.Field("last", last);
  }
  friend bool operator==(const LayerRange&, const LayerRange&) = default;
};

}  // namespace stagecoach

#endif  // STAGECOACH_BASE_LAYER_RANGE_H_
