// LaterRows: whether a network on text looks ahead. A row is a token. If the network looks ahead,
// the output of a row depends on tokens behind it. Then a row is computed from its own target, the
// next token. And the text behind a prompt changes what follows the prompt.
// Threads: pure function.
#ifndef STAGECOACH_NETWORK_PASSES_LATER_ROWS_H_
#define STAGECOACH_NETWORK_PASSES_LATER_ROWS_H_

#include <string>
#include <string_view>

#include "network/network.h"

namespace stagecoach {

// The first layer that looks ahead: "layer 3, residual(layer_norm, attention), by attention without
// a causal mask". Empty: no row sees a later one in an evaluation. It is found from the layers'
// calls.
std::string ReaderOfLaterRows(const Network& network);

// Whether an evaluation of this operation gives each row of what it makes by the same row of what it
// reads.
bool IsRowByRow(std::string_view operation);

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_PASSES_LATER_ROWS_H_
