// Padded output: logits whose rows do not lie one right after the other. The matrix units of a card
// want each row to begin at a multiple of 16 bytes. Dense rows of 50257 bfloat16 numbers do not.
// Weights and checkpoints stay as they are.
// Ownership: pure functions.
// Units:     columns are elements of the last extent.
// Errors:    none; bytes beyond 64 bits come out as the largest number.
#ifndef STAGECOACH_NETWORK_PASSES_PADDED_OUTPUT_H_
#define STAGECOACH_NETWORK_PASSES_PADDED_OUTPUT_H_

#include <cstdint>
#include <optional>

#include "base/numbers/dtype.h"
#include "network/network.h"

namespace stagecoach {

// The value of the layer's lists that may have padded rows in training. A plain linear makes it for
// the loss alone, and only that linear's gradients read its gradient. nullopt: another reader needs
// dense rows.
std::optional<ValueId> PaddableOutput(const Network& network, const NetworkLayer& layer);

// Columns from one row to the next if rows begin at whole 16 bytes.
int64_t PaddedColumns(int64_t columns, DType dtype);

// Bytes of the padding in these layers' output, for all micro-batches of a mini-batch.
int64_t PaddingBytes(const Network& network, int first, int last, int64_t batch_size);

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_PASSES_PADDED_OUTPUT_H_
