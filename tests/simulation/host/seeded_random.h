// SeededRandom: the one stream of random numbers of a simulated world. Every draw is in the order
// of its events, so a seed is a run. Its numbers are made here and not by the standard library,
// whose distributions may differ by version.
// Threads: one.
#ifndef STAGECOACH_TESTS_SIMULATION_HOST_SEEDED_RANDOM_H_
#define STAGECOACH_TESTS_SIMULATION_HOST_SEEDED_RANDOM_H_

#include <cstddef>
#include <cstdint>
#include <iterator>

namespace stagecoach {

class SeededRandom {
 public:
  explicit SeededRandom(uint64_t seed) : state_(seed) {}

  // splitmix64 (Steele, Lea and Flood, 2014, "Fast splittable pseudorandom number generators").
  uint64_t Bits() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  uint64_t Below(uint64_t count) { return Bits() % count; }
  int From(int least, int most) {
    return least + static_cast<int>(Below(static_cast<uint64_t>(most - least) + 1));
  }
  double Share() { return static_cast<double>(Bits() >> 11) * 0x1.0p-53; }  // of [0, 1)
  double Between(double least, double most) { return least + (most - least) * Share(); }
  bool Chance(double probability) { return Share() < probability; }
  template <typename List>
  auto& Of(List& list) {
    return list[static_cast<size_t>(Below(std::size(list)))];
  }

 private:
  uint64_t state_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_TESTS_SIMULATION_HOST_SEEDED_RANDOM_H_
