#include "stage/backends/cuda/launch_config.h"

#include "gtest/gtest.h"

namespace stagecoach::cuda {
namespace {

constexpr int64_t kHuge = int64_t{1} << 40;

TEST(LaunchConfig, NothingIsLaunchedForEmptyShapes) {
  EXPECT_EQ(ElementLaunch(0).grid, 0u);
  EXPECT_EQ(RowLaunch(0, 5).grid, 0u);
  EXPECT_EQ(RowLaunch(5, 0).grid, 0u);
  EXPECT_EQ(PlanColumnSum(0, 5, 1, 4).partial.grid, 0u);
  EXPECT_EQ(PlanColumnSum(5, 0, 1, 4).total.grid, 0u);
  EXPECT_EQ(PlanNorm(0).chunks, 0);
  EXPECT_EQ(AttentionLaunch(0, 3, 5).grid, 0u);
}

TEST(LaunchConfig, GridsStayWithinTheDevicesLimits) {
  EXPECT_EQ(ElementLaunch(1).grid, 1u);
  EXPECT_EQ(ElementLaunch(257).grid, 2u);
  EXPECT_EQ(ElementLaunch(kHuge, 4).grid, kElementGrid);
  EXPECT_EQ(RowLaunch(kHuge, 5).grid, kMaxGrid);
  EXPECT_EQ(AttentionLaunch(65536, 96, 1024).grid, 65536u * 96 * 32);
  EXPECT_DEATH(AttentionLaunch(kHuge, 96, 1024), "too many");
}

TEST(LaunchConfig, RowsGetWholeWarpsAndNoMoreThanTheyCanUse) {
  for (const int64_t width : {1, 5, 128, 129, 768, 50257, 1 << 24}) {
    const LaunchShape shape = RowLaunch(3, width);
    EXPECT_EQ(shape.grid, 3u);
    EXPECT_EQ(shape.block % 32, 0u);
    EXPECT_GE(shape.block, 32u);
    EXPECT_LE(shape.block, kMaxRowThreads);
  }
  EXPECT_EQ(RowLaunch(3, 100).block, 32u);
  EXPECT_EQ(RowLaunch(3, 50257).block, kMaxRowThreads);
  EXPECT_EQ(RowLaunch(3, 257, 8).block, 64u);
  EXPECT_EQ(RowLaunch(3, 50257, 8, kMaxLogitThreads).block, kMaxLogitThreads);
}

TEST(LaunchConfig, ChunksCoverAllRowsOnceAndTheirSumsStaySmall) {
  for (const int64_t rows : {1, 31, 33, 1000, 8192, 1 << 20}) {
    for (const int64_t columns : {1, 33, 768, 50257, 1 << 21}) {
      const ColumnSumPlan plan = PlanColumnSum(rows, columns, 2, 4);
      EXPECT_GE(plan.chunks * plan.rows_per_chunk, rows);
      EXPECT_LT((plan.chunks - 1) * plan.rows_per_chunk, rows);
      EXPECT_EQ(plan.partial.grid, (columns + 127) / 128 * plan.chunks);
      EXPECT_EQ(plan.total.grid, (columns + 31) / 32 * 2);
      const ColumnSumPlan wide = PlanColumnSum(rows, columns, 2, 8);
      EXPECT_EQ(wide.rows_per_chunk, plan.rows_per_chunk) << "the order of additions";
      EXPECT_EQ(plan.scratch_bytes, static_cast<size_t>(plan.chunks * columns) * 8);
      EXPECT_LE(plan.scratch_bytes, std::max<size_t>(8 << 20, columns * 8));
    }
  }
}

TEST(LaunchConfig, ChunksOfANormCoverAllRowsOnceAndAreManyWhereRowsAre) {
  for (const int64_t rows : {1, 3, 8, 9, 1000, 8192, 1 << 20}) {
    for (const int64_t width : {1, 33, 768, 1600, 12288, 1 << 21}) {
      const NormBackwardPlan plan = PlanNormBackward(rows, width, 2, 8);
      EXPECT_GE(plan.chunks * plan.rows_per_chunk, rows);
      EXPECT_LT((plan.chunks - 1) * plan.rows_per_chunk, rows);
      EXPECT_EQ(plan.rows_per_chunk % kNormRows, 0);
      EXPECT_EQ(plan.chunk.grid, plan.chunks);
      EXPECT_EQ(plan.few.grid, (rows + kNormRows - 1) / kNormRows);
      EXPECT_EQ(plan.chunk.block, RowLaunch(rows, width, 8).block);
      EXPECT_EQ(plan.few.block, plan.chunk.block) << "the order of additions within a row";
      EXPECT_GE(plan.sum_elements, width);
      EXPECT_EQ(plan.sum_elements % 8, 0);
      EXPECT_EQ(plan.scratch_bytes, static_cast<size_t>(plan.chunks * plan.sum_elements) * 8);
      EXPECT_LE(plan.scratch_bytes, std::max<size_t>(16 << 20, plan.sum_elements * 8));
      EXPECT_EQ(plan.shared_bytes != 0, width <= 12288);
    }
  }
  EXPECT_EQ(PlanNormBackward(32768, 768, 2, 8).chunks, 512);
  EXPECT_EQ(PlanNormBackward(8192, 1600, 2, 8).rows_per_chunk, 28);
  EXPECT_EQ(PlanNormBackward(1024, 4096, 2, 8).chunks, 128);
  EXPECT_EQ(PlanNormBackward(0, 4096, 2, 8).chunk.grid, 0u);
}

TEST(LaunchConfig, PartialNormsCoverAllElements) {
  for (const int64_t n : {int64_t{1}, kNormChunk, kNormChunk + 1, kHuge}) {
    const NormPlan plan = PlanNorm(n);
    EXPECT_GE(plan.chunks * plan.elements_per_chunk, n);
    EXPECT_LT((plan.chunks - 1) * plan.elements_per_chunk, n);
    EXPECT_LE(plan.chunks, kNormBlocks);
    EXPECT_EQ(plan.elements_per_chunk % 4, 0);
  }
}

TEST(LaunchConfig, TilesFitTheSharedMemoryOfAmpere) {
  constexpr size_t kAmpere = 163 * 1024, kWithoutAsking = 48 * 1024;
  EXPECT_EQ(PaddedHeadWidth(1), 32);
  EXPECT_EQ(PaddedHeadWidth(33), 64);
  EXPECT_EQ(PaddedHeadWidth(128), 128);
  EXPECT_DEATH(PaddedHeadWidth(129), "head width");
  EXPECT_LE(AttentionForwardSharedBytes(128), kWithoutAsking);
  EXPECT_LE(AttentionBackwardSharedBytes(64), kWithoutAsking);
  EXPECT_LE(AttentionBackwardSharedBytes(128), kAmpere / 2);
}

}  // namespace
}  // namespace stagecoach::cuda
