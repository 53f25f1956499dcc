// Card memory: memory of a stage on a card beyond that of its layers. Stages allocate it by these
// numbers (stage/executor/boundary_port.h, stage/backends/device, stage/backends/cuda). So a
// forecast counts the real sizes. Calls are described by devices/card.
// Units:     bytes.
// Errors:    none; sizes beyond 64 bits come out as the largest number.
// See:       docs/architecture/cuda.md, "What the memory forecast counts".
#ifndef STAGECOACH_PLAN_COSTS_CARD_MEMORY_H_
#define STAGECOACH_PLAN_COSTS_CARD_MEMORY_H_

#include <cstdint>
#include <string>

#include "devices/card/card_profile.h"
#include "network/network.h"

namespace stagecoach {

// Most messages to one neighbour whose copies are under way; each holds its source.
inline constexpr int kCardOutbox = 2;
// Most places for messages that have not come yet, one of each size.
inline constexpr int kCardAhead = 2;

// Text for people: how the card computes an operation that it has more than one kernel for, as
// "attention: through cuDNN, where the stage has it". It names one operation: the first with a
// slower kernel, else the last. Empty for a network without such an operation.
std::string KernelsOnCard(const CardProfile& card, const Network& network);

// Text for people: how a card goes through the network's head. Empty if it goes as a whole.
std::string HeadOnCard(const Network& network);

// Bytes that one call of layers [first, last) takes beyond the standing workspace.
int64_t CallBytesOnCard(const CardProfile& card, const Network& network, int first, int last,
                        int64_t batch_size, int64_t micro_batches);

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_COSTS_CARD_MEMORY_H_
