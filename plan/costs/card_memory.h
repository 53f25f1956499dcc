// Card memory: the memory that a stage on a card takes beside that of its layers. Stages take it by
// these numbers (stage/executor/boundary_port.h, stage/backends/device, stage/backends/cuda). So a
// forecast counts what is taken. A stage registers a CardProfile for what a library on the card
// takes beside: only the stage knows the library.
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

// For one operation at a time, from the start on.
inline constexpr int64_t kCardWorkspaceBytes = int64_t{32} << 20;

// Messages to one neighbour whose copies may be under way; each holds what it is copied from.
inline constexpr int kCardOutbox = 2;
// Places for messages that have not come yet, one of each size; so many at most.
inline constexpr int kCardAhead = 2;

// Attention of a library: what it may be asked for, and what its repeatable backward passes take.
// Whether it takes a shape in the end is known on the card alone.
struct AttentionKernels {
  std::string name;                   // for people
  std::vector<Precision> precisions;  // no others; nor anything with dropout
  int64_t tile = 1;                   // contexts of whole tiles
  int64_t widest_head = 0, head_multiple = 1;
  // Backward passes store their score matrices: two bytes for each pair of rows of each head. So
  // much of that at once, as long as one head fits.
  int64_t score_bytes = 0;
  friend bool operator==(const AttentionKernels&, const AttentionKernels&) = default;
};
// Empty: it may be asked; else why not, for people: "the context, 100, is no multiple of 128".
std::string WhyNot(const AttentionKernels& kernels, const AttentionCall& attention,
                   Precision precision);

// CardProfile: a stage's card, for the planner.
struct CardProfile {
  std::optional<AttentionKernels> attention;  // none: own kernels, which take nothing beside
  friend bool operator==(const CardProfile&, const CardProfile&) = default;
};

// The part of attention that one execution computes. It is so many neighbouring sequences with all
// heads, or one sequence with so many neighbouring heads.
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

// Bytes that backward passes of layers [first, last) take for the time of a call, beyond the
// workspace that is there. If the kernels may take the attention, they are the matrices of the
// largest slice.
int64_t AttentionWorkspaceBytes(const AttentionKernels& kernels, const Network& network, int first,
                                int last, int64_t batch_size, int64_t micro_batches);

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_COSTS_CARD_MEMORY_H_
