#include "plan/phase.h"

namespace stagecoach {

const char* PhaseName(Phase phase) {
  static constexpr const char* kNames[kPhases] = {
      "forward",      "recompute", "backward",  "optimizer",  "send",
      "receive_wait", "bubble",    "data_wait", "checkpoint", "idle"};
  return kNames[static_cast<int>(phase)];
}

double PhaseSeconds::Sum() const {
  double sum = 0;
  for (double value : seconds) sum += value;
  return sum;
}

}  // namespace stagecoach
