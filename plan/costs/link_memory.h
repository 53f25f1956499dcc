// Link memory: how much of a stage's memory the messages at one of its boundaries may take while
// its program stands at an instruction. It holds however fast or slow the others are.
//   A message is in the link from the send that gave it away to the receive that takes it. All that
//   time it may be in the memory of either stage, or of both. The sender keeps the tensors until
//   the receiver's credit is here. The receiver takes their places with the first byte that comes.
//   The credit comes in front of what the receiver sends then. Behind an evaluation the receiver
//   sends nothing. A credit that is late there is not counted in the next program.
//   The number of messages depends on where the neighbour stands. It can be wherever messages let
//   it. It has received no more than was sent. It has sent no more than there was room for. It has
//   done what our stage has waited for. Programs end and never wait in a circle (ValidateSchedule).
//   So each such place can be reached, with any place of the other neighbour. Both boundaries may
//   be at their fullest at once.
// Units:     bytes; sizes beyond 64 bits come out as the largest number. Positions count from 0: so
//            many instructions done.
// See:       docs/ARCHITECTURE.md, "Memory".
#ifndef STAGECOACH_PLAN_COSTS_LINK_MEMORY_H_
#define STAGECOACH_PLAN_COSTS_LINK_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "network/network.h"
#include "plan/schedules/schedule.h"

namespace stagecoach {

// Bytes of a message in the stage's memory, beside those that its program still holds of the same
// tensors.
struct LinkMessage {
  int64_t bytes = 0;
  // From this position on it takes `bytes_then`: the program has freed the shared tensors.
  size_t changes_at = std::numeric_limits<size_t>::max();
  int64_t bytes_then = 0;
  int64_t At(size_t position) const { return position < changes_at ? bytes : bytes_then; }
};

// Messages in the order in which the stage's program sends and receives them.
struct BoundaryMessages {
  std::vector<LinkMessage> sent, received;
};

struct LinkPeak {
  int64_t bytes = 0;
  size_t neighbour = 0;  // its position at this peak
};

// Peaks by position of the stage's program, its end included. edge: between a cell of the stage and
// one of the neighbour. capacity: messages that a link takes in each direction.
std::vector<LinkPeak> MostInLink(const StageProgram& stage, const StageProgram& neighbour, int edge,
                                 const BoundaryMessages& messages, int capacity);

// The largest messages that reach a cell, layers [first, last), with micro-batches of at most
// `samples`: activations or tied values from the cell before, gradients from the one behind. Bytes
// of the tensors, without frames.
struct ArrivingMessages {
  int64_t from_before = 0, from_behind = 0;
};
ArrivingMessages MessagesOfCell(const Network& network, int first, int last, int64_t samples);

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_COSTS_LINK_MEMORY_H_
