// DescribeOnCard: memory of a call on a card beyond the standing workspace (kCardWorkspaceBytes),
// and its kernel, as far as the card's profile says. The card's library may still refuse a shape.
// Threads:   pure functions.
// See:       docs/architecture/cuda.md, "What the memory forecast counts".
#ifndef STAGECOACH_DEVICES_CARD_DESCRIBE_H_
#define STAGECOACH_DEVICES_CARD_DESCRIBE_H_

#include <cstdint>

#include "base/numbers/precision.h"
#include "devices/call_description.h"
#include "devices/card/card_profile.h"
#include "operations/operation.h"

namespace stagecoach {

// samples: of the micro-batch.
CallDescription DescribeOnCard(const CardProfile& card, const Call& call, const CallTypes& types,
                               int64_t samples, Precision precision);

}  // namespace stagecoach

#endif  // STAGECOACH_DEVICES_CARD_DESCRIBE_H_
