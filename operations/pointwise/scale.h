// scale: y = factor * x, rounded once. The gradient is scale with dy for x. y may take the place of
// x.
#ifndef STAGECOACH_OPERATIONS_POINTWISE_SCALE_H_
#define STAGECOACH_OPERATIONS_POINTWISE_SCALE_H_

namespace stagecoach {

inline constexpr double kLeastScale = 1e-6, kMostScale = 1e6;

// All back ends multiply by the factor rounded to float32.
struct ScaleAttributes {
  double factor = 1;
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Between("factor", factor, kLeastScale, kMostScale);
  }
};

}  // namespace stagecoach

#endif  // STAGECOACH_OPERATIONS_POINTWISE_SCALE_H_
