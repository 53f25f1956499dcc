#include "services/cli/spec/weights_here.h"

#include "base/status.h"
#include "stage/weights/weight_file.h"

namespace stagecoach {

absl::Status CheckWeightsHere(const JobSpec& spec) {
  if (!spec.initialize.given()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const Network network, ExpandJob(spec));
  return WeightFile::Open(*PosixFileSystem(), spec.initialize, network).status();
}

absl::Status CheckWeightsIfHere(const JobSpec& spec) {
  const absl::Status status = CheckWeightsHere(spec);
  return absl::IsInvalidArgument(status) ? status : absl::OkStatus();
}

}  // namespace stagecoach
