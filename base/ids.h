// Ids: distinct types for the numbers that must not be mixed up, and the fence every message
// carries.
// Units and shapes: stages, cells and micro-batches count from 0; a default id is invalid (-1).
#ifndef STAGECOACH_BASE_IDS_H_
#define STAGECOACH_BASE_IDS_H_

#include <compare>
#include <cstdint>
#include <string>

namespace stagecoach {

template <typename Tag>
struct Id {
  int32_t value = -1;
  constexpr Id() = default;
  constexpr explicit Id(int32_t v) : value(v) {}
  constexpr bool valid() const { return value >= 0; }
  friend constexpr auto operator<=>(Id, Id) = default;
};

using StageId = Id<struct StageTag>;
using CellId = Id<struct CellTag>;  // consecutive layers; of the whole pipeline
using MicroBatchId = Id<struct MicroBatchTag>;

// Fence: the incarnation of a job that a message belongs to (docs/ARCHITECTURE.md, "Recovery").
// Receivers drop a message whose fence is older than theirs. A newer one cancels current work.
struct Fence {
  std::string job;
  uint64_t term = 0;        // start of the coordinator; each one has a higher term
  uint64_t generation = 0;  // placement of the job, +1 per recovery
  uint64_t step = 0;        // steps applied or skipped before the one meant
  uint32_t attempt = 0;     // try of one step

  friend bool operator==(const Fence&, const Fence&) = default;
  std::string ToString() const;
};

// Order of incarnations: (term, generation); step and attempt belong to one incarnation.
std::strong_ordering CompareIncarnation(const Fence& a, const Fence& b);

}  // namespace stagecoach

#endif  // STAGECOACH_BASE_IDS_H_
