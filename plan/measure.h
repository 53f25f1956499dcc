// Measure: a number that says how good a network is, beside its loss: "accuracy", "top_5"
// (Objective::sums), "mean_iou", and of one class "iou/7" (coordinator/job/view/class_measures.h).
#ifndef STAGECOACH_PLAN_MEASURE_H_
#define STAGECOACH_PLAN_MEASURE_H_

#include <string>
#include <string_view>

namespace stagecoach {

// Of a step whose network has an auxiliary output: what that one's loss is, without its weight.
inline constexpr char kAuxiliaryLoss[] = "auxiliary_loss";

struct Measure {
  std::string name;
  double value = 0;  // of a report: the sum over the terms of the loss; else their mean
  friend bool operator==(const Measure&, const Measure&) = default;
};

// There may be thousands of these, so they are left out where a few numbers are shown.
inline bool IsOfAClass(std::string_view name) { return name.find('/') != std::string_view::npos; }

// All others are shares.
inline bool IsALoss(std::string_view name) { return name.ends_with("_loss"); }

// Of one class, over the targets that count (operations/losses/cross_entropy.h). Whole numbers.
struct ClassCounts {
  double right = 0, targets = 0, guesses = 0;
  friend bool operator==(const ClassCounts&, const ClassCounts&) = default;
};

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_MEASURE_H_
