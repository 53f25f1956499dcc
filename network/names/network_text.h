// Identity of a network's weights as stable text: context, vocabulary, and every layer with its
// function, widths, parameter names and shapes. Networks of equal text can exchange checkpoints.
// Dropout rates and initial values are left out: they concern training only.
#ifndef STAGECOACH_NETWORK_NAMES_NETWORK_TEXT_H_
#define STAGECOACH_NETWORK_NAMES_NETWORK_TEXT_H_

#include <string>

#include "network/network.h"

namespace stagecoach {

std::string CanonicalNetworkText(const Network& network);

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_NAMES_NETWORK_TEXT_H_
