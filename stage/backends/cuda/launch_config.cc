#include "stage/backends/cuda/launch_config.h"

#include <algorithm>

#include "base/errors/check.h"

namespace stagecoach::cuda {
namespace {

int64_t CeilDivide(int64_t a, int64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

// Partial sums of one column sum never take more than this, however wide the matrix.
constexpr int64_t kPartialElements = 1 << 20;
constexpr int64_t kMaxChunks = 128, kMinChunkRows = 32;
// Chunks of a norm's backward are blocks: enough of them to fill a card, more where rows are short
// and blocks small, and not so many that the partial sums cost what reading the rows once saves.
constexpr int64_t kNormChunkElements = 1 << 19, kMinNormChunks = 256, kMaxNormChunks = 512;
constexpr int64_t kMinNormRows = 8;
constexpr size_t kMaxNormSharedBytes = 96 * 1024;  // what cards from Ampere on give a block

}  // namespace

LaunchShape ElementLaunch(int64_t elements, int64_t per_thread) {
  CHECK_GE(elements, 0) << "elements";
  const int64_t work = CeilDivide(elements, per_thread);
  const int64_t grid = std::min(CeilDivide(work, kElementThreads), kElementGrid);
  return {static_cast<uint32_t>(grid), kElementThreads};
}

LaunchShape RowLaunch(int64_t rows, int64_t width, int64_t per_thread, uint32_t max_threads) {
  CHECK(rows >= 0 && width >= 0) << rows << " rows of " << width;
  if (rows == 0 || width == 0) return {0, 32};
  const int64_t warps =
      std::clamp<int64_t>(CeilDivide(width, per_thread * 32), 1, max_threads / 32);
  return {static_cast<uint32_t>(std::min(rows, kMaxGrid)), static_cast<uint32_t>(32 * warps)};
}

ColumnSumPlan PlanColumnSum(int64_t rows, int64_t columns, int sums, int per_thread) {
  CHECK(rows >= 0 && columns >= 0) << rows << " rows of " << columns;
  ColumnSumPlan plan;
  if (rows == 0 || columns == 0) return plan;
  const int64_t most = std::clamp<int64_t>(kPartialElements / columns, 1, kMaxChunks);
  plan.rows_per_chunk = std::max(kMinChunkRows, CeilDivide(rows, most));
  plan.chunks = CeilDivide(rows, plan.rows_per_chunk);
  const int64_t column_blocks = CeilDivide(columns, kColumnThreads * per_thread);
  CHECK_LE(column_blocks, kMaxGrid / plan.chunks) << columns << " columns are too many";
  plan.partial = {static_cast<uint32_t>(column_blocks * plan.chunks),
                  static_cast<uint32_t>(kColumnThreads * kColumnLanes)};
  plan.total = {static_cast<uint32_t>(CeilDivide(columns, kColumnThreads) * sums),
                static_cast<uint32_t>(kColumnThreads * kColumnLanes)};
  plan.scratch_bytes = static_cast<size_t>(plan.chunks * columns) * sums * sizeof(float);
  return plan;
}

NormBackwardPlan PlanNormBackward(int64_t rows, int64_t width, int sums, int per_thread) {
  NormBackwardPlan plan;
  const uint32_t threads = RowLaunch(rows, width, per_thread).block;
  if (rows == 0 || width == 0) return plan;
  const int64_t wanted = std::clamp(kNormChunkElements / width, kMinNormChunks, kMaxNormChunks);
  const int64_t most = std::min(wanted, std::max<int64_t>(kPartialElements / width, 1));
  const int64_t share = std::max(kMinNormRows, CeilDivide(rows, most));
  plan.rows_per_chunk = CeilDivide(share, kNormRows) * kNormRows;
  plan.chunks = CeilDivide(rows, plan.rows_per_chunk);
  plan.sum_elements = CeilDivide(width, per_thread) * per_thread;
  const size_t sum_bytes = static_cast<size_t>(plan.sum_elements) * sums * sizeof(float);
  plan.shared_bytes = sum_bytes <= kMaxNormSharedBytes ? sum_bytes : 0;
  plan.scratch_bytes = sum_bytes * static_cast<size_t>(plan.chunks);
  const int64_t few = CeilDivide(rows, kNormRows);
  CHECK_LE(few, kMaxGrid) << rows << " rows are too many";
  plan.chunk = {static_cast<uint32_t>(plan.chunks), threads};
  plan.few = {static_cast<uint32_t>(few), threads};
  plan.total = {static_cast<uint32_t>(CeilDivide(width, kColumnThreads) * sums),
                static_cast<uint32_t>(kColumnThreads * kColumnLanes)};
  return plan;
}

NormPlan PlanNorm(int64_t elements) {
  CHECK_GE(elements, 0) << "elements";
  const int64_t share = CeilDivide(CeilDivide(elements, kNormBlocks), 4) * 4;
  const int64_t per_chunk = std::max(kNormChunk, share);
  return {per_chunk, CeilDivide(elements, per_chunk)};
}

LaunchShape AttentionLaunch(int64_t sequences, int64_t heads, int64_t context) {
  CHECK(sequences >= 0 && heads >= 0 && context >= 0) << "attention";
  const uint32_t threads = kAttentionThreads;
  if (sequences == 0 || heads == 0 || context == 0) return {0, threads};
  const int64_t tiles = CeilDivide(context, kAttentionTile);
  CHECK(heads <= kMaxGrid / tiles && sequences <= kMaxGrid / (tiles * heads))
      << sequences << " sequences of " << context << " with " << heads << " heads are too many";
  return {static_cast<uint32_t>(sequences * heads * tiles), threads};
}

int PaddedHeadWidth(int64_t head_width) {
  CHECK(head_width > 0 && head_width <= kMaxHeadWidth) << "head width " << head_width;
  return head_width <= 32 ? 32 : head_width <= 64 ? 64 : 128;
}

// Tiles have a column more than they need, so that neighbouring rows start in neighbouring banks.
size_t AttentionForwardSharedBytes(int padded_width) {
  const size_t operand = static_cast<size_t>(kAttentionTile) * (padded_width + 1);
  const size_t scores = static_cast<size_t>(kAttentionTile) * (kAttentionTile + 1);
  return (2 * operand + scores) * sizeof(float);
}

size_t AttentionBackwardSharedBytes(int padded_width) {
  const size_t operand = static_cast<size_t>(kAttentionTile) * (padded_width + 1);
  const size_t scores = static_cast<size_t>(kAttentionTile) * (kAttentionTile + 1);
  return (4 * operand + 2 * scores + 2 * kAttentionTile) * sizeof(float);
}

}  // namespace stagecoach::cuda
