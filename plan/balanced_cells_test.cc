#include "plan/balanced_cells.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "base/errors/status.h"

namespace stagecoach {
namespace {

double Slowest(const Partition& partition, const std::vector<double>& costs) {
  double most = 0;
  for (int stage = 0; stage < partition.stages(); ++stage) {
    double sum = 0;
    for (const LayerRange& cell : partition.LayersOf(stage, static_cast<int>(costs.size()))) {
      for (int i = cell.first; i < cell.last; ++i) sum += costs[static_cast<size_t>(i)];
    }
    most = std::max(most, sum);
  }
  return most;
}

// Cells of 5, 4, 1 and 2 make stages of 7 and 5; a layer from the first cell to the second, 6 and 6.
TEST(BalanceStages, CountsTheSumsOfStagesAndNotTheirCells) {
  const std::vector<double> costs = {4, 1, 4, 1, 2}, none(5, 0.0), shares(4, 0.0);
  const Partition balanced = BalanceStages({{0, 2, 3, 4}, VPlacement(2)}, costs, none, shares);
  EXPECT_THAT(balanced.first_layers, testing::ElementsAre(0, 1, 3, 4));
  EXPECT_EQ(Slowest(balanced, costs), 6);
}

TEST(BalanceStages, NeverMakesTheSlowestStageSlowerAndKeepsALayerForEachCell) {
  std::mt19937 random(11);
  for (int round = 0; round < 200; ++round) {
    const int stages = 1 + static_cast<int>(random() % 5);
    const CellPlacement placement = round % 2 == 0 ? VPlacement(stages) : LoopPlacement(stages, 3);
    const int layers = static_cast<int>(placement.size() + random() % 20);
    std::vector<double> costs;
    for (int i = 0; i < layers; ++i) costs.push_back(1 + static_cast<double>(random() % 100));
    Partition start = *UniformPartition(layers, static_cast<int>(placement.size()));
    start.placement = placement;
    const std::vector<double> none(costs.size(), 0.0), shares(placement.size(), 0.0);
    const Partition balanced = BalanceStages(start, costs, none, shares);
    EXPECT_LE(Slowest(balanced, costs), Slowest(start, costs)) << "round " << round;
    for (int cell = 0; cell < balanced.cells(); ++cell) {
      EXPECT_LT(balanced.first(cell), balanced.last(cell, layers));
    }
  }
}

}  // namespace
}  // namespace stagecoach
