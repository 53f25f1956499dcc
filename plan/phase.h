// Phase: the disjoint parts of a stage's wall time. Names are the metric's label values
// (docs/metrics.md). A bubble is the wait for a neighbour that had not sent yet. A receive_wait is
// the wait for what was on its way. Time outside any step is idle.
#ifndef STAGECOACH_PLAN_PHASE_H_
#define STAGECOACH_PLAN_PHASE_H_

#include <array>
#include <cstdint>

namespace stagecoach {

enum class Phase : uint8_t {
  kForward,
  kRecompute,
  kBackward,
  kOptimizer,
  kSend,
  kReceiveWait,
  kBubble,
  kDataWait,
  kCheckpoint,
  kIdle
};
inline constexpr int kPhases = 10;
const char* PhaseName(Phase phase);  // "forward", ..., "receive_wait", "data_wait", "idle"

struct PhaseSeconds {
  std::array<double, kPhases> seconds{};
  double operator[](Phase phase) const { return seconds[static_cast<int>(phase)]; }
  double& operator[](Phase phase) { return seconds[static_cast<int>(phase)]; }
  double Sum() const;
};

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_PHASE_H_
