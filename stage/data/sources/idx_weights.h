// IdxWeights: the weights of the images of data.idx.
// Errors: INVALID_ARGUMENT with the file, the sample, its number and the remedy.
#ifndef STAGECOACH_STAGE_DATA_SOURCES_IDX_WEIGHTS_H_
#define STAGECOACH_STAGE_DATA_SOURCES_IDX_WEIGHTS_H_

#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "stage/data/formats/idx_file.h"

namespace stagecoach {

// The numbers of a file that was kept. It checks that each may be a weight
// (operations/losses/loss_types.h).
absl::StatusOr<std::vector<float>> IdxWeights(const IdxFile& file);

// Checks that some sample, of those that a job trains on or evaluates with, has a weight above 0.
// `where`: their file.
absl::Status CheckSomeWeight(const std::string& where, std::span<const float> weights,
                             const std::string& what);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_DATA_SOURCES_IDX_WEIGHTS_H_
