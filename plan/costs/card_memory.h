// Card memory: what a stage on a card takes beside what its layers compute with. Stages take it by
// these numbers (stage/executor/boundary_port.h, stage/backends/device, stage/backends/cuda), so that a
// forecast counts what is taken. What a library on the card needs beside is told by who knows the
// library: a CardProfile, which a stage registers.
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

// What the planner is told of a stage's card.
struct CardProfile {
  std::optional<AttentionKernels> attention;  // none: own kernels, which take nothing beside
  friend bool operator==(const CardProfile&, const CardProfile&) = default;
};

// What one execution computes: so many neighbouring sequences with all heads, or one sequence with
// so many neighbouring heads.
struct AttentionSlice {
  int64_t sequences = 0, heads = 0;
  friend bool operator==(const AttentionSlice&, const AttentionSlice&) = default;
};
// The largest slice of which equal ones make up the whole and whose matrices fit into `bytes`; at
// least one head of one sequence.
AttentionSlice LargestAttentionSlice(int64_t sequences, int64_t context, int64_t heads,
                                     int64_t bytes);

// How a card with these kernels computes the model's attention, for people; empty for a model
// without.
std::string AttentionOnCard(const AttentionKernels& kernels, const Network& model);

// How a card goes through the model's head, for people; empty where it goes as a whole.
std::string HeadOnCard(const Network& model);

// What backward passes of layers [first, last) take for the time of a call, beyond the workspace
// that is there: the matrices of the largest slice, where the kernels may take the attention.
int64_t AttentionWorkspaceBytes(const AttentionKernels& kernels, const Network& model, int first,
                                int last, int64_t batch_size, int64_t micro_batches);

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_COSTS_CARD_MEMORY_H_
