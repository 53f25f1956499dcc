// clip: y = min(max(x, -limit), limit). GPipe clips the logits of its translation models so
// (1811.06965, section 5). A value that is not a number stays. y may take the place of x.
// clip_gradient: dy, x; dx = dy where |x| <= limit, else 0. dx may take the place of dy.
#ifndef STAGECOACH_OPERATIONS_POINTWISE_CLIP_H_
#define STAGECOACH_OPERATIONS_POINTWISE_CLIP_H_

namespace stagecoach {

inline constexpr double kLeastClipLimit = 1e-3, kMostClipLimit = 1e6;

// For both operations. All back ends compare with the limit rounded to float32.
struct ClipAttributes {
  double limit = 1;
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Between("limit", limit, kLeastClipLimit, kMostClipLimit);
  }
};

}  // namespace stagecoach

#endif  // STAGECOACH_OPERATIONS_POINTWISE_CLIP_H_
