// LossCall: the call of a network's loss (Objective), as the last stage prepares it and a plan
// counts it.
// Ownership: plain values. Threads: any.
// Errors:    CHECKs that the network has an objective; the builder checked its types.
#ifndef STAGECOACH_NETWORK_LOSS_CALL_H_
#define STAGECOACH_NETWORK_LOSS_CALL_H_

#include "network/network.h"

namespace stagecoach {

struct LossCall {
  Call call;  // values are counted from the inputs on
  CallTypes types;
};
// gradient: of a training step, with the scale as last input; else of an evaluation.
LossCall LossCallOf(const Network& network, bool gradient);

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_LOSS_CALL_H_
