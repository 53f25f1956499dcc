// How work goes on where the store answers nothing. The real clients repeat their calls for a
// minute. Here all calls of a piece of work happen at one moment, so the minute is waited before it;
// some give up sooner.
// Units: virtual seconds.
#ifndef STAGECOACH_TESTS_SIMULATION_STORE_STORE_PATIENCE_H_
#define STAGECOACH_TESTS_SIMULATION_STORE_STORE_PATIENCE_H_

#include "tests/simulation/host/seeded_random.h"

namespace stagecoach {

inline constexpr double kStorePatience = 60;  // S3Client's and StoreClient's give_up_seconds
inline constexpr double kStoreAgain = 0.2;    // until the next look whether it answers

inline bool GoesOnWaiting(double waited_seconds, SeededRandom& random) {
  constexpr double kGivesUp = 0.0005;
  return waited_seconds < kStorePatience && !random.Chance(kGivesUp);
}

}  // namespace stagecoach

#endif  // STAGECOACH_TESTS_SIMULATION_STORE_STORE_PATIENCE_H_
