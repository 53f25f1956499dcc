// Types for rows: a row is the last extent of a value, and all extents before it count rows.
// Errors: none; values have one extent at least.
#ifndef STAGECOACH_OPERATIONS_ROW_TYPES_H_
#define STAGECOACH_OPERATIONS_ROW_TYPES_H_

#include <utility>
#include <vector>

#include "operations/value_type.h"

namespace stagecoach {

inline ValueType WithLastExtent(const ValueType& type, int64_t extent) {
  std::vector<int64_t> extents = type.shape.extents();
  extents.back() = extent;
  return {type.element, type.leading, Shape(std::move(extents))};
}

// Type of one float32 number a row.
inline ValueType StatisticsType(const ValueType& x) {
  std::vector<int64_t> extents = x.shape.extents();
  extents.pop_back();
  return {Element::kFloat32, x.leading, Shape(std::move(extents))};
}

// Type of a float32 weight or bias for each element of a row, and of its gradient.
inline ValueType RowWeightType(const ValueType& x) {
  return WeightType(Element::kFloat32, {x.shape.back()});
}

}  // namespace stagecoach

#endif  // STAGECOACH_OPERATIONS_ROW_TYPES_H_
