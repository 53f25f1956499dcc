// CheckRanges: the ranges that a struct of a job's spec gives in its visit (plan/job/job_spec.h).
// Threads: pure function.
// Errors:  INVALID_ARGUMENT naming field, value and range.
#ifndef STAGECOACH_PLAN_RANGE_CHECK_H_
#define STAGECOACH_PLAN_RANGE_CHECK_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "operations/attributes.h"

namespace stagecoach {

class RangeChecker : public AttributeGetter {
 public:
  using AttributeGetter::AttributeGetter;
  template <typename T>
  void Field(std::string_view, const T&) {}
  template <typename T>
  void UnlessDefault(std::string_view, const T&) {}
};

// prefix: "training."
template <typename Spec>
absl::Status CheckRanges(const std::string& prefix, Spec spec) {
  const Attributes nothing;  // so it looks at the values that are there
  RangeChecker checker(nothing, prefix);
  spec.Visit(checker);
  return checker.Finish();
}

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_RANGE_CHECK_H_
