#include "services/cli/spec/weights_here.h"

#include <memory>

#include "base/errors/status.h"
#include "stage/files/data_roots.h"
#include "stage/weights/weight_file.h"

namespace stagecoach {

absl::Status CheckWeightsHere(const JobSpec& spec, const Network& network) {
  if (!spec.initialize.given()) return absl::OkStatus();
  // The user's own files: their rights are all that matters.
  const std::unique_ptr<DataRoots> files = DataRoots::Everything();
  return WeightFile::Open(*files, spec.initialize, network).status();
}

}  // namespace stagecoach
