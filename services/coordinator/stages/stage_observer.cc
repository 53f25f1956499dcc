#include "services/coordinator/stages/stage_observer.h"

#include "absl/strings/str_cat.h"

namespace stagecoach {

std::vector<StageTarget> TargetsOf(const JobView& view) {
  std::vector<StageTarget> targets;
  for (const StageAssignment& stage : view.stages) {
    targets.push_back({stage.stage, {stage.stage_name, stage.address}});
  }
  return targets;
}

std::string WhyMissing(const std::string& name, const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kDeadlineExceeded:
      return absl::StrCat(name, " did not answer in time");
    case absl::StatusCode::kUnavailable:
      return absl::StrCat(name, " cannot be reached");
    case absl::StatusCode::kUnimplemented:
      return absl::StrCat(name, " runs a version that cannot tell");
    default:
      return absl::StrCat(name, ": ", status.ToString());
  }
}

}  // namespace stagecoach
