// Measure: a number that says how good a network is, beside its loss: "accuracy", "top_5" (Objective::sums).
#ifndef STAGECOACH_PLAN_MEASURE_H_
#define STAGECOACH_PLAN_MEASURE_H_

#include <string>

namespace stagecoach {

struct Measure {
  std::string name;
  double value = 0;  // of a report: the sum over the terms of the loss; else their mean
  friend bool operator==(const Measure&, const Measure&) = default;
};

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_MEASURE_H_
