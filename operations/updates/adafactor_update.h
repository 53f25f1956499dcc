// adafactor_update: the gradient divided by the root of a mean of its squares, which for a matrix is
// kept as means of its rows and of its columns (Shazeer, Stern, arXiv 1804.04235, algorithms 4 and
// 5). Of update t, with g = gradient_scale * gradient and b = 1 - t^-decay_power,
//   of a matrix   row = b * row + (1 - b) * (mean of g^2 over the row + epsilon1), column likewise;
//                 v = row * column / mean of row
//   of a vector   square = b * square + (1 - b) * (g^2 + epsilon1); v = square
//   u = g / sqrt(v); u /= max(1, RMS(u) / clip), unless clip is 0
//   m = beta1 * m + (1 - beta1) * u in the place of u, if beta1 is not 0
//   w -= rate * ((max(epsilon2, RMS(w)) if scale_by_parameter, else 1) * u + weight_decay * w)
// Here rate is the learning rate, or 1 / sqrt(t) if that is less and relative_step is set. RMS is
// the root of the mean square over the parameter, of w before the update. A parameter of more than
// two extents is a matrix over the last two for each index of the others; RMS is of the whole.
// States in this order: of a matrix column, m if there is beta1, row; of a vector m, square. A row's
// mean has the parameter's shape without the last extent, a column's without the last but one.
#ifndef STAGECOACH_OPERATIONS_UPDATES_ADAFACTOR_UPDATE_H_
#define STAGECOACH_OPERATIONS_UPDATES_ADAFACTOR_UPDATE_H_

#include <vector>

#include "operations/updates/update.h"

namespace stagecoach {

struct AdafactorUpdateAttributes {
  double beta1 = 0, decay_power = 0.8, epsilon1 = 1e-30, epsilon2 = 1e-3, clip = 1;
  double weight_decay = 0;
  bool relative_step = false, scale_by_parameter = false;
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Rate("beta1", beta1);
    visit.Positive("decay_power", decay_power, 1);
    visit.Between("epsilon1", epsilon1, kLeastEpsilon1, 1);
    visit.Positive("epsilon2", epsilon2, 1);
    visit.ZeroOrBetween("clip", clip, kLeastClip, kMostClip);
    visit.Between("weight_decay", weight_decay, 0, kMaxWeightDecay);
    visit.Flag("relative_step", relative_step);
    visit.Flag("scale_by_parameter", scale_by_parameter);
  }
  // A float32 of full precision.
  static constexpr double kLeastEpsilon1 = 1e-36, kLeastClip = 1e-6, kMostClip = 1e6;
  friend bool operator==(const AdafactorUpdateAttributes&,
                         const AdafactorUpdateAttributes&) = default;
};

// The names and shapes of a parameter's states, ascending by their names.
std::vector<UpdateState> AdafactorStates(bool momentum, const Shape& parameter);

// A parameter as matrices, one after the other. A vector is none.
struct FactoredShape {
  explicit FactoredShape(const Shape& parameter);
  bool factored = false;
  int64_t matrices = 0, rows = 0, columns = 0;
};

// All numbers of one update, as kernels compute with them.
struct AdafactorNumbers {
  float gradient_scale, learning_rate, decay, rest, beta1, epsilon1, epsilon2, clip, weight_decay;
  bool scale_by_parameter;

  // The factor of u, and that of the step, from sums of squares over the parameter.
  float ClipOf(double squares_of_direction, int64_t elements) const;
  float ScaleOf(double squares_of_value, int64_t elements) const;
};
AdafactorNumbers NumbersOf(const AdafactorUpdateAttributes& attributes, const UpdateNumbers& step);

}  // namespace stagecoach

#endif  // STAGECOACH_OPERATIONS_UPDATES_ADAFACTOR_UPDATE_H_
