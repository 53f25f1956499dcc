#include "stage/weights/position_grid.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/numbers/resampling.h"

namespace stagecoach {
namespace {

// 0: the number is no square.
int64_t SideOf(int64_t rows) {
  const auto side = static_cast<int64_t>(std::llround(std::sqrt(static_cast<double>(rows))));
  return side * side == rows ? side : 0;
}

std::string SizeText(GridSize size) { return absl::StrCat(size.height, "x", size.width); }

GridSize GridOf(const WeightName& name, const WeightPart& part, const Shape& tensor) {
  const int64_t side = SideOf(PatchRows(name, part, tensor));
  return {.height = side, .width = side};
}

}  // namespace

int64_t PatchRows(const WeightName& name, const WeightPart& part, const Shape& tensor) {
  if (!name.patches.has_value() || tensor.rank() != part.shape.rank()) return 0;
  const int rows = part.axes.front();
  for (int axis = 0; axis < tensor.rank(); ++axis) {
    if (axis != rows && tensor[axis] != part.shape[axis]) return 0;
  }
  return std::max<int64_t>(tensor[rows] - name.patches->first_row, 0);
}

bool CanResamplePositions(const WeightName& name, const WeightPart& part, const Shape& tensor) {
  return tensor != part.shape && SideOf(PatchRows(name, part, tensor)) > 0;
}

std::vector<float> ResampledPositions(const WeightName& name, const WeightPart& part,
                                      const Shape& tensor, std::span<const float> numbers) {
  CHECK(CanResamplePositions(name, part, tensor)) << name.ours;
  const int64_t width = name.shape.back();
  const auto others = static_cast<size_t>(name.patches->first_row * width);
  std::vector<float> result(static_cast<size_t>(part.shape.elements()));
  std::copy_n(numbers.begin(), others, result.begin());
  ResampleGrid(numbers.subspan(others), GridOf(name, part, tensor), width,
               std::span(result).subspan(others), name.patches->size);
  return result;
}

std::string ResampledText(const WeightName& name, const WeightPart& part, const Shape& tensor) {
  return absl::StrCat("resampled the positions ", name.ours, " from ",
                      SizeText(GridOf(name, part, tensor)), " to ", SizeText(name.patches->size),
                      " patches");
}

}  // namespace stagecoach
