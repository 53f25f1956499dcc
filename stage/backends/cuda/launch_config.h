// Grids and blocks from shapes, on the host and testable there. They depend on the shape alone,
// never on the card. A block's share of a sum can be part of the numerics. So two cards of one
// kind, and every number of stages, get the same bits.
// Units: elements, rows, columns. A grid of 0 means that there is nothing to launch.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_LAUNCH_CONFIG_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_LAUNCH_CONFIG_H_

#include <cstddef>
#include <cstdint>

namespace stagecoach::cuda {

struct LaunchShape {
  uint32_t grid = 0;
  uint32_t block = 0;
};

constexpr int64_t kMaxGrid = 2147483647;   // largest gridDim.x
constexpr int64_t kElementGrid = 1 << 16;  // enough for every card; the rest by striding
constexpr uint32_t kElementThreads = 256;
constexpr uint32_t kMaxRowThreads = 256;
constexpr uint32_t kMaxLogitThreads = 1024;  // few rows at a time, so that they stay in the cache
constexpr int kColumnThreads = 32;           // packs of columns that a block of a column sum owns
constexpr int kColumnLanes = 8;              // rows that it works on at a time
constexpr int kNormRows = 4;            // rows that a block of a norm's backward reads at a time
constexpr int64_t kUpdateChunk = 8192;  // elements of a tensor that a block of an optimizer has
constexpr int64_t kNormChunk = 16384;   // elements of a partial sum of squares, at least
constexpr int64_t kNormBlocks = 4096;   // partial sums, at most
constexpr int kAttentionTile = 32;      // query rows and key rows of a tile
constexpr int kAttentionThreads = 128;  // four threads a row
constexpr int kMaxHeadWidth = 128;

// A kernel that strides over `elements`, `per_thread` at a time.
LaunchShape ElementLaunch(int64_t elements, int64_t per_thread = 1);

// One block a row, striding if there are more rows than a grid has blocks; a thread works on
// `per_thread` neighbours at a time.
LaunchShape RowLaunch(int64_t rows, int64_t width, int64_t per_thread = 4,
                      uint32_t max_threads = kMaxRowThreads);

// Sums over the rows of a matrix in two stages: partial sums of chunks of rows, then their sum.
struct ColumnSumPlan {
  int64_t chunks = 0;  // partial sums for each column
  int64_t rows_per_chunk = 0;
  LaunchShape partial;       // grid = column blocks * chunks
  LaunchShape total;         // for all sums; 32 columns a block
  size_t scratch_bytes = 0;  // for `sums` sums at a time
};
// A thread of the first stage has `per_thread` columns, which does not change the order of sums.
ColumnSumPlan PlanColumnSum(int64_t rows, int64_t columns, int sums, int per_thread);

// Gradients of a norm over rows (kernels/norm_backward.cuh). A block has a chunk of rows and makes
// partial sums of it for the weights. If only the input's gradient is needed, a chunk has kNormRows
// rows: that gradient has no sum over rows.
struct NormBackwardPlan {
  int64_t chunks = 0;
  int64_t rows_per_chunk = 0;
  int64_t sum_elements = 0;  // of one partial sum of a chunk: the width in whole packs
  size_t shared_bytes = 0;   // for the sums of a block; 0: a block sums in the scratch memory
  LaunchShape chunk, few;    // a block a chunk, a block kNormRows rows
  LaunchShape total;         // of all sums; 32 columns a block
  size_t scratch_bytes = 0;
};
// `sums` sums over the rows at a time. A thread has packs of `per_thread` columns; the order of a
// sum within a row depends on it.
NormBackwardPlan PlanNormBackward(int64_t rows, int64_t width, int sums, int per_thread);

// Partial sums of squares of one tensor.
struct NormPlan {
  int64_t elements_per_chunk = 0;  // a multiple of 4: chunks begin at multiples of 16 bytes
  int64_t chunks = 0;
};
NormPlan PlanNorm(int64_t elements);

// One block a tile of rows of one head of one sequence; grid 0 if there are none. CHECKs that a
// grid can hold the tiles.
LaunchShape AttentionLaunch(int64_t sequences, int64_t heads, int64_t context);
// The width to which a head is padded in shared memory: 32, 64 or 128.
int PaddedHeadWidth(int64_t head_width);
size_t AttentionForwardSharedBytes(int padded_width);
size_t AttentionBackwardSharedBytes(int padded_width);

}  // namespace stagecoach::cuda

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_LAUNCH_CONFIG_H_
