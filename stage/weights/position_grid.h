// PositionGrid: a vit's positions from a file of another image size. Those of the patches are
// resampled from the file's square grid to the job's grid (base/numbers/resampling.h), as timm's
// resample_abs_pos_embed does; the rows in front, as the class token's, stay as they are.
// Threads: pure functions.
#ifndef STAGECOACH_STAGE_WEIGHTS_POSITION_GRID_H_
#define STAGECOACH_STAGE_WEIGHTS_POSITION_GRID_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/numbers/shape.h"
#include "network/names/weight_names.h"

namespace stagecoach {

// How many rows of patches a tensor of this shape has. 0: the array is no positions of patches, or
// the tensor differs from the part in more than the number of these rows.
int64_t PatchRows(const WeightName& name, const WeightPart& part, const Shape& tensor);
// Is the number of patches another one, but a square?
bool CanResamplePositions(const WeightName& name, const WeightPart& part, const Shape& tensor);

// For CanResamplePositions. numbers: of the whole tensor. Returns them in the part's shape.
std::vector<float> ResampledPositions(const WeightName& name, const WeightPart& part,
                                      const Shape& tensor, std::span<const float> numbers);
// "resampled the positions model/0000/position from 14x14 to 24x24 patches".
std::string ResampledText(const WeightName& name, const WeightPart& part, const Shape& tensor);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_WEIGHTS_POSITION_GRID_H_
