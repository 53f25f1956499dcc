// Messages between a cell, layers [first, last), and its neighbours.
// Threads: pure functions. Units: bytes of the tensors, without frames.
#ifndef STAGECOACH_PLAN_COSTS_CELL_MESSAGES_H_
#define STAGECOACH_PLAN_COSTS_CELL_MESSAGES_H_

#include <cstdint>

#include "network/network.h"

namespace stagecoach {

// Largest messages that arrive, with micro-batches of at most `samples`: activations or tied values
// from the cell before, gradients from the one behind.
struct ArrivingMessages {
  int64_t from_before = 0, from_behind = 0;
};
ArrivingMessages MessagesOfCell(const Network& network, int first, int last, int64_t samples);

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_COSTS_CELL_MESSAGES_H_
