// Head chunks: runs the last layer and the loss together, on some rows of a micro-batch at a time.
// The last layer must be one plain linear that makes the logits. Logits of a vocabulary are wide:
// 3.3 GB in bfloat16 for 32 sequences of GPT-2. Only the loss and the head's own gradients read
// them. With chunks they never exist as a whole. A row then takes the place of a sample. No call of
// the head or the loss tells the rows of one sample from those of another.
// Ownership: pure functions.
// Units:     rows are those of the logits, samples times the targets of each; bytes.
// Errors:    HeadByRows CHECKs HeadGoesByChunks. Numbers beyond 64 bits come out as the largest
//            one.
// See:       docs/ARCHITECTURE.md, "The objective".
#ifndef STAGECOACH_NETWORK_PASSES_HEAD_CHUNKS_H_
#define STAGECOACH_NETWORK_PASSES_HEAD_CHUNKS_H_

#include <cstdint>

#include "network/network.h"

namespace stagecoach {

// Size of a chunk: a power of two of rows. Their logits have at most `bytes` bytes, but there are
// at least `least_rows` rows.
struct HeadChunkLimits {
  int64_t bytes = 0;
  int64_t least_rows = 1;
  friend bool operator==(const HeadChunkLimits&, const HeadChunkLimits&) = default;
};

// Cost of a chunk, not measured. It reads and writes the gradient of the head's weight once more, 8
// bytes a number, beside 6 operations a row and number. Take 3.35 TB/s by the data sheet of an
// H100, and an assumed 700 TFLOP/s. With 4,096 rows, as these limits give for GPT-2 in bfloat16,
// the cost is a fifteenth of the time of the products. With 1,024 rows it is a quarter.
inline constexpr HeadChunkLimits kCardHeadChunks{.bytes = int64_t{512} << 20, .least_rows = 1024};

// Whether the last layer may go by chunks. It must be one linear without bias, of a value that
// layers make. Cross-entropy alone reads its output, and no auxiliary output is beside it. Chunks
// must also be worth it. The head's input has to stay until its last chunk, beside its gradient. So
// logits have to be wider than that input. The answer follows from the network alone, so it is the
// same for every cut and schedule.
bool HeadGoesByChunks(const Network& network);

// Rows of a chunk; the last one of a micro-batch may have fewer. Their number depends on the width
// of the logits and their type alone. So it is the same for every micro-batch, schedule and number
// of stages, whatever memory is left.
int64_t HeadChunkRows(const Network& network, const HeadChunkLimits& limits);

// Rows of a micro-batch of this many samples.
int64_t HeadRows(const Network& network, int64_t samples);

// Bytes of the logits of its largest chunk. In training, rows begin at whole 16 bytes, and the
// gradient takes the place of the logits. In an evaluation, rows are dense.
int64_t HeadChunkBytes(const Network& network, const HeadChunkLimits& limits, int64_t samples,
                       bool evaluation);

// The same network with a row as a sample, for code that runs only its last layer and its loss.
Network HeadByRows(const Network& network);

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_PASSES_HEAD_CHUNKS_H_
