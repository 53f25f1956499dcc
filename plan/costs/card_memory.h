// Card memory: memory of a stage on a card beyond that of its layers. Stages allocate it by these
// numbers (stage/executor/boundary_port.h, stage/backends/device, stage/backends/cuda). So a
// forecast counts the real sizes. A stage registers a CardProfile with the needs of the card's
// library, which only the stage knows.
// Units:     bytes.
// Errors:    none; sizes beyond 64 bits come out as the largest number.
// See:       docs/architecture/cuda.md, "What the memory forecast counts".
#ifndef STAGECOACH_PLAN_COSTS_CARD_MEMORY_H_
#define STAGECOACH_PLAN_COSTS_CARD_MEMORY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "network/lists/attention_calls.h"
#include "network/network.h"

namespace stagecoach {

// Workspace of one operation at a time, taken at the start.
inline constexpr int64_t kCardWorkspaceBytes = int64_t{32} << 20;

// Most messages to one neighbour whose copies are under way; each holds its source.
inline constexpr int kCardOutbox = 2;
// Most places for messages that have not come yet, one of each size.
inline constexpr int kCardAhead = 2;

// Attention of a library: the shapes that it may be asked for, and the memory of its repeatable
// backward passes. Only the card knows whether the library takes a shape in the end.
struct AttentionKernels {
  std::string name;                   // for people
  std::vector<Precision> precisions;  // no others; nor anything with dropout
  int64_t tile = 1;                   // contexts of whole tiles
  int64_t widest_head = 0, head_multiple = 1;
  // Most bytes of score matrices at once, unless one head needs more. Backward passes store two
  // bytes for each pair of rows of each head.
  int64_t score_bytes = 0;
  friend bool operator==(const AttentionKernels&, const AttentionKernels&) = default;
};
// Empty: it may be asked; else the reason, for people: "the context, 100, is no multiple of 128".
std::string WhyNot(const AttentionKernels& kernels, const AttentionCall& attention,
                   Precision precision);

// CardProfile: a stage's card, for the planner.
struct CardProfile {
  std::optional<AttentionKernels> attention;  // none: own kernels, which take nothing beside
  friend bool operator==(const CardProfile&, const CardProfile&) = default;
};

// The part of attention that one execution computes: some neighbouring sequences with all heads, or
// one sequence with some neighbouring heads.
struct AttentionSlice {
  int64_t sequences = 0, heads = 0;
  friend bool operator==(const AttentionSlice&, const AttentionSlice&) = default;
};
// The largest slice whose matrices fit into `bytes`. Equal slices make up the whole. It has at
// least one head of one sequence.
AttentionSlice LargestAttentionSlice(int64_t sequences, int64_t context, int64_t heads,
                                     int64_t bytes);

// Text for people: how a card with these kernels computes the network's attention. Empty for a
// network without.
std::string AttentionOnCard(const AttentionKernels& kernels, const Network& network);

// Text for people: how a card goes through the network's head. Empty if it goes as a whole.
std::string HeadOnCard(const Network& network);

// Bytes that one call of a backward pass of layers [first, last) takes beyond the standing
// workspace. If the kernels may take the attention, they are the matrices of the largest slice.
int64_t AttentionWorkspaceBytes(const AttentionKernels& kernels, const Network& network, int first,
                                int last, int64_t batch_size, int64_t micro_batches);

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_COSTS_CARD_MEMORY_H_
