// Card memory: what a stage on a card takes beside what its layers compute with. Stages take it by
// these numbers (stage/executor/boundary_port.h, stage/backends/device, stage/backends/cuda), so that a
// forecast counts what is taken.
// Units:     bytes.
// Errors:    none; sizes beyond 64 bits come out as the largest number.
// See:       docs/gpu.md, "What the memory forecast counts".
#ifndef STAGECOACH_PLAN_CARD_MEMORY_H_
#define STAGECOACH_PLAN_CARD_MEMORY_H_

#include <cstdint>
#include <string>

#include "plan/model_spec.h"

namespace stagecoach {

// For one operation at a time, from the start on.
inline constexpr int64_t kCardWorkspaceBytes = int64_t{32} << 20;

// Messages to one neighbour whose copies may be under way; each holds what it is copied from.
inline constexpr int kCardOutbox = 2;
// Places for messages that have not come yet, one of each size; so many at most.
inline constexpr int kCardAhead = 2;

// Repeatable backward passes of cuDNN's attention store their score matrices: two bytes for each
// pair of rows of each head. So much of that at once, as long as one head fits.
inline constexpr int64_t kAttentionScoreBytes = int64_t{256} << 20;
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

// Shapes that cuDNN may be asked for: contexts of whole tiles, heads neither wider nor of another
// multiple. Whether it is there and takes them is known on the card alone.
inline constexpr int64_t kAttentionTile = 128, kAttentionWidestHead = 128,
                         kAttentionHeadMultiple = 8;
// Empty: it may be asked; else why not, for people: "the context, 100, is no multiple of 128".
std::string WhyNotCudnn(const AttentionSpec& attention, int64_t width, int64_t context,
                        Precision precision);
bool CudnnMayTake(const AttentionSpec& attention, int64_t width, int64_t context,
                  Precision precision);

// How a card computes the model's attention, for people; empty for a model without.
std::string AttentionOnCard(const ExpandedModel& model);

// What backward passes of layers [first, last) take for the time of a call, beyond the workspace
// that is there: the matrices of the largest slice, where cuDNN may take the attention.
int64_t AttentionWorkspaceBytes(const ExpandedModel& model, int first, int last, int64_t batch_size,
                                int64_t micro_batches);

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_CARD_MEMORY_H_
