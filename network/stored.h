// IsStored: whether checkpoints hold a parameter. They hold no tied one, whose value is its owner's,
// and no base, which is in the file of weights (ParameterSpec::Part).
// Threads: pure function.
#ifndef STAGECOACH_NETWORK_STORED_H_
#define STAGECOACH_NETWORK_STORED_H_

#include "network/parameter.h"

namespace stagecoach {

inline bool IsStored(const ParameterSpec& parameter) {
  return !parameter.tied() && parameter.part != ParameterSpec::Part::kBase;
}

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_STORED_H_
