// Types for rows: a row is the last extent of a value, and all extents before it count rows.
// Errors: none; values have one extent at least.
#ifndef STAGECOACH_OPERATIONS_ROW_TYPES_H_
#define STAGECOACH_OPERATIONS_ROW_TYPES_H_

#include "operations/value_type.h"

namespace stagecoach {

inline ValueType WithLastExtent(const ValueType& type, int64_t extent) {
  return {type.element, type.leading, type.shape.With(type.shape.rank() - 1, {extent})};
}

// Type of one float32 number a row.
inline ValueType StatisticsType(const ValueType& x) {
  return {Element::kFloat32, x.leading, x.shape.WithoutLast()};
}

// Type of a float32 weight or bias for each element of a row, and of its gradient.
inline ValueType RowWeightType(const ValueType& x) {
  return WeightType(Element::kFloat32, {x.shape.back()});
}

}  // namespace stagecoach

#endif  // STAGECOACH_OPERATIONS_ROW_TYPES_H_
