// StateSpec: an array that a layer keeps and no optimizer trains, as batch norm's moving averages.
// It is in checkpoints and exported weights beside the parameters, has no gradient, and changes
// when a step is applied.
#ifndef STAGECOACH_NETWORK_STATE_H_
#define STAGECOACH_NETWORK_STATE_H_

#include <string>

#include "base/numbers/shape.h"

namespace stagecoach {

// Kept in float32. Its global name is made like a parameter's: "model/0003/running_mean".
struct StateSpec {
  std::string name;
  Shape shape;
  float initial = 0.0f;  // of every element
  friend bool operator==(const StateSpec&, const StateSpec&) = default;
};

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_STATE_H_
