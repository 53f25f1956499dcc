// prepend_token: x [rows, width], token [width], position [rows + 1, width] -> y [rows + 1, width].
// y is the token and then the rows of x, each with its position added and rounded once. A Vision
// Transformer reads it. Its input's gradient is dy without its first row: reshape and pad.
// prepend_token_weight_gradient: dy; adds to d_token and d_position, over the samples in ascending
// order.
#ifndef STAGECOACH_OPERATIONS_ATTENTION_PREPEND_TOKEN_H_
#define STAGECOACH_OPERATIONS_ATTENTION_PREPEND_TOKEN_H_

#include "operations/attributes.h"

namespace stagecoach {

using PrependTokenAttributes = NoAttributes;

}  // namespace stagecoach

#endif  // STAGECOACH_OPERATIONS_ATTENTION_PREPEND_TOKEN_H_
