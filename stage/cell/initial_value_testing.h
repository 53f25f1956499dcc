// All initial values of a parameter at once.
#ifndef STAGECOACH_STAGE_CELL_INITIAL_VALUE_TESTING_H_
#define STAGECOACH_STAGE_CELL_INITIAL_VALUE_TESTING_H_

#include <vector>

#include "stage/cell/initial_value.h"

namespace stagecoach {

inline std::vector<float> InitialValue(const ParameterSpec& spec, uint64_t seed, int layer) {
  std::vector<float> values(static_cast<size_t>(spec.shape.elements()));
  SetInitialValues(spec, seed, layer, 0, values);
  return values;
}

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_CELL_INITIAL_VALUE_TESTING_H_
