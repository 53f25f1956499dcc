// Measure: a number beside the loss. It says how good a network is: "accuracy", "top_5"
// (Objective::sums), "mean_iou", and of one class "iou/7" (coordinator/job/view/class_measures.h),
// "bleu" and "chrf2".
// Or it tells of the mini-batch: "padding".
#ifndef STAGECOACH_PLAN_MEASURE_H_
#define STAGECOACH_PLAN_MEASURE_H_

#include <string>
#include <string_view>

namespace stagecoach {

// Loss of the network's auxiliary output in a step, before its weight.
inline constexpr char kAuxiliaryLoss[] = "auxiliary_loss";
// Share of padding among the source and target positions of a step, where lengths vary.
inline constexpr char kPadding[] = "padding";

// Of an evaluation's translations (scores/), of 100.
inline constexpr std::string_view kBleu = "bleu", kChrf2 = "chrf2";

// The measure of the averages of the weights: "average_accuracy".
inline std::string AverageOf(std::string_view name) { return std::string("average_").append(name); }

struct Measure {
  std::string name;
  double value = 0;  // of a report: the sum over the terms of the loss; else their mean
  friend bool operator==(const Measure&, const Measure&) = default;
};

// Measures of a class. There may be thousands, so short displays leave them out.
inline bool IsOfAClass(std::string_view name) { return name.find('/') != std::string_view::npos; }

inline bool IsAScore(std::string_view name) {  // of 100
  return name.ends_with(kBleu) || name.ends_with(kChrf2);
}

// All others are shares.
inline bool IsALoss(std::string_view name) { return name.ends_with("_loss"); }

// Counts of one class over the targets that count (operations/losses/cross_entropy.h).
struct ClassCounts {
  double right = 0, targets = 0, guesses = 0;
  friend bool operator==(const ClassCounts&, const ClassCounts&) = default;
};

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_MEASURE_H_
