// Head chunks: the last layer and the loss together, so many rows of a micro-batch at a time, where the last layer is one
// plain linear that makes the logits. Logits of a vocabulary are wide, 3.3 GB of 32 sequences of GPT-2, and nobody but the
// loss and the head's own gradients reads them: by chunks they are never there as a whole. A row is then what a sample is
// elsewhere: no call of these lists tells the rows of one sample from those of another.
// Ownership: pure functions.
// Units:     rows are those of the logits, samples times what the loss is a mean of in each; bytes.
// Errors:    HeadByRows may only be asked of networks whose HeadGoesByChunks, which is CHECKed; numbers beyond 64 bits come
//            out as the largest one.
// See:       docs/ARCHITECTURE.md, "The objective".
#ifndef STAGECOACH_NETWORK_PASSES_HEAD_CHUNKS_H_
#define STAGECOACH_NETWORK_PASSES_HEAD_CHUNKS_H_

#include <cstdint>

#include "network/network.h"

namespace stagecoach {

// How large chunks are: a power of two of rows whose logits have so many bytes at most, but so many rows at least.
struct HeadChunkLimits {
  int64_t bytes = 0;
  int64_t least_rows = 1;
  friend bool operator==(const HeadChunkLimits&, const HeadChunkLimits&) = default;
};

// Each chunk reads and writes the gradient of the head's weight once more, 8 bytes a number, beside 6 operations a row and
// number. By the data sheet of an H100, 3.35 TB/s, and an assumed 700 TFLOP/s that would take a fifteenth of the time of the
// products with 4,096 rows, as these limits give for GPT-2 in bfloat16, and a quarter of it with 1,024. Not measured.
inline constexpr HeadChunkLimits kCardHeadChunks{.bytes = int64_t{512} << 20, .least_rows = 1024};

// Whether the last layer may go by chunks: one linear without bias, of a value that layers make, whose output cross-entropy
// alone reads, and no auxiliary output beside it. And whether it is worth it: what the head reads has to stay until its
// last chunk, beside its gradient, so logits have to be wider than that. It follows from the network alone, so it is the
// same for every cut and schedule.
bool HeadGoesByChunks(const Network& network);

// Rows of a chunk; the last one of a micro-batch may have fewer. Of the width of the logits and their type alone: so it is
// the same for every micro-batch, schedule and number of stages, whatever memory is left.
int64_t HeadChunkRows(const Network& network, const HeadChunkLimits& limits);

// Rows that a micro-batch of so many samples has.
int64_t HeadRows(const Network& network, int64_t samples);

// The largest chunk's logits of such a micro-batch: in training, where rows begin at whole 16 bytes and the gradient takes
// the place of the logits; or in an evaluation.
int64_t HeadChunkBytes(const Network& network, const HeadChunkLimits& limits, int64_t samples,
                       bool evaluation);

// The same network for who runs its last layer and its loss, and nothing else of it: their samples are rows.
Network HeadByRows(const Network& network);

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_PASSES_HEAD_CHUNKS_H_
