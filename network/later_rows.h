// LaterRows: whether a network on text looks ahead: a row of it is a token, and what it gives there may depend on tokens
// behind it. Then the target of a row, which is the next token, is among what the row is computed of, and what stands
// behind a prompt changes what follows it.
// Threads: pure function.
#ifndef STAGECOACH_NETWORK_LATER_ROWS_H_
#define STAGECOACH_NETWORK_LATER_ROWS_H_

#include <string>

#include "network/network.h"

namespace stagecoach {

// "layer 3, residual(layer_norm, attention), by attention without a causal mask"; empty: no row sees a later one in an
// evaluation. By the calls that the layers consist of.
std::string ReaderOfLaterRows(const Network& network);

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_LATER_ROWS_H_
