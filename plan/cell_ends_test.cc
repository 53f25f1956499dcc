// Protects the search for cells that fit: every end is found, with few questions.
#include "plan/cell_ends.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace stagecoach {
namespace {

// Weights that a cell holds, and what comes in at its front, as memory has it; each stage has
// another limit.
struct Case {
  std::vector<int> weights, fronts, limits;
  bool Fits(int stage, int first, int last) const {
    const int sum = std::accumulate(weights.begin() + first, weights.begin() + last, 0);
    return sum + fronts[first] <= limits[stage];
  }
};

Case Draw(std::mt19937& random, int layers, int stages) {
  Case drawn;
  for (int i = 0; i < layers; ++i) {
    drawn.weights.push_back(static_cast<int>(random() % 9));
    drawn.fronts.push_back(static_cast<int>(random() % 30));
  }
  for (int k = 0; k < stages; ++k) drawn.limits.push_back(5 + static_cast<int>(random() % 40));
  return drawn;
}

// reached: the furthest end of the stage before.
int FurthestByTryingAll(const Case& drawn, int layers, int stages, int stage, int first,
                        int reached) {
  const int most = layers - (stages - 1 - stage);
  if (first < stage || first >= most || first > reached) return first;
  int furthest = first;
  for (int end = stage + 1 == stages ? layers : first + 1; end <= most; ++end) {
    if (drawn.Fits(stage, first, end)) furthest = end;
  }
  return furthest;
}

TEST(FindCellEnds, FindsWhatTryingAllCellsFinds) {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    const int layers = 1 + static_cast<int>(random() % 12);
    const int stages = 1 + static_cast<int>(random() % layers);
    const Case drawn = Draw(random, layers, stages);
    const CellEnds ends = FindCellEnds(layers, stages, [&](int stage, int first, int last) {
      EXPECT_LT(first, last);
      EXPECT_EQ(stage == 0, first == 0);
      EXPECT_EQ(stage + 1 == stages, last == layers);
      EXPECT_GE(first, stage);
      EXPECT_GE(layers - last, stages - 1 - stage) << "a layer for each stage behind";
      return drawn.Fits(stage, first, last);
    });
    ASSERT_EQ(ends.size(), static_cast<size_t>(stages));
    int reached = 0;
    for (int stage = 0; stage < stages; ++stage) {
      int furthest = 0;
      for (int first = 0; first < layers; ++first) {
        const int end = FurthestByTryingAll(drawn, layers, stages, stage, first, reached);
        ASSERT_EQ(ends[stage][first], end)
            << "stage " << stage << " of " << stages << ", first layer " << first;
        if (end > first) furthest = std::max(furthest, end);
      }
      reached = furthest;
    }
  }
}

TEST(FindCellEnds, AsksAboutThreeTimesForEachStageAndLayer) {
  int asked = 0;
  FindCellEnds(200, 4, [&](int, int first, int last) {
    ++asked;
    return last - first <= 40;
  });
  EXPECT_LT(asked, 3 * 4 * 200);
}

// Symptom: planning near the limit of memory took minutes, most of it about cells that no
// partition could have.
TEST(FindCellEnds, DoesNotAskAboutCellsThatNoStageBeforeReaches) {
  FindCellEnds(200, 4, [&](int stage, int first, int last) {
    EXPECT_LE(first, 10 * stage);
    return last - first <= 10;
  });
  FindCellEnds(200, 4, [&](int stage, int, int) {
    EXPECT_EQ(stage, 0) << "on which nothing fits";
    return false;
  });
}

}  // namespace
}  // namespace stagecoach
