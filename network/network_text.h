// What weights belong to, as stable text: context, vocabulary, and every layer with its function,
// widths, parameter names and shapes. Equal texts can exchange checkpoints. Dropout rates and
// initial values are left out: they are how a network is trained, not what it is.
#ifndef STAGECOACH_NETWORK_NETWORK_TEXT_H_
#define STAGECOACH_NETWORK_NETWORK_TEXT_H_

#include <string>

#include "network/network.h"

namespace stagecoach {

std::string CanonicalNetworkText(const Network& network);

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_NETWORK_TEXT_H_
