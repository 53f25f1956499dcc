// IdxWeights: what the images of data.idx weigh.
// Errors: INVALID_ARGUMENT with the file, the sample, its number and the remedy.
#ifndef STAGECOACH_STAGE_DATA_SOURCES_IDX_WEIGHTS_H_
#define STAGECOACH_STAGE_DATA_SOURCES_IDX_WEIGHTS_H_

#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "stage/data/formats/idx_file.h"

namespace stagecoach {

// Of a file that was kept: its numbers, each one that a weight may be
// (operations/losses/loss_types.h).
absl::StatusOr<std::vector<float>> IdxWeights(const IdxFile& file);

// Weights of the samples that a job trains on, or evaluates with: one of them has to count.
// `where`: their file.
absl::Status CheckSomeWeight(const std::string& where, std::span<const float> weights,
                             const std::string& what);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_DATA_SOURCES_IDX_WEIGHTS_H_
