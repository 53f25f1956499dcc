// Protects the partitioner: never worse than trying every partition.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <limits>
#include <optional>
#include <random>
#include <tuple>
#include <utility>

#include "base/sanitized.h"
#include "plan/cell_ends.h"
#include "plan/plan.h"

namespace stagecoach {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<int> Best(const std::vector<double>& costs, int stages) {
  const auto partition = MinimizeSlowest(costs, stages);
  EXPECT_TRUE(partition.ok()) << partition.status();
  return partition.ok() ? partition->first_layers : std::vector<int>();
}

// Tries every partition in order of the cuts; keeps the first with the least (slowest, squares).
class BruteForce {
 public:
  BruteForce(const std::vector<double>& costs, int stages) : costs_(costs), stages_(stages) {
    first_.push_back(0);
    Try(0, 0);
  }
  const std::vector<int>& best() const { return best_; }

 private:
  void Try(double slowest, double squares) {
    const int layers = static_cast<int>(costs_.size());
    const int first = first_.back();
    if (static_cast<int>(first_.size()) == stages_) {
      double cell = 0;
      for (int i = first; i < layers; ++i) cell += costs_[i];
      const std::pair<double, double> value{std::max(slowest, cell), squares + cell * cell};
      if (best_.empty() || value < value_) std::tie(best_, value_) = std::tie(first_, value);
      return;
    }
    double cell = 0;
    for (int next = first + 1; next < layers; ++next) {
      cell += costs_[next - 1];
      first_.push_back(next);
      Try(std::max(slowest, cell), squares + cell * cell);
      first_.pop_back();
    }
  }

  const std::vector<double>& costs_;
  const int stages_;
  std::vector<int> first_, best_;
  std::pair<double, double> value_;
};

TEST(MinimizeSlowest, EqualsBruteForceOnSmallCases) {
  std::mt19937 random(1);
  for (int round = 0; round < 6000; ++round) {
    const int layers = 1 + static_cast<int>(random() % 9);
    const int stages = 1 + static_cast<int>(random() % layers);
    const int spread = 1 + static_cast<int>(random() % 20);  // small: many ties; zeros too
    std::vector<double> costs;
    for (int i = 0; i < layers; ++i) costs.push_back(static_cast<double>(random() % spread));
    ASSERT_EQ(Best(costs, stages), BruteForce(costs, stages).best())
        << "stages " << stages << ", costs " << testing::PrintToString(costs);
  }
}

TEST(MinimizeSlowest, IsAsFastAsTheBestOnFractions) {
  std::mt19937 random(2);
  std::uniform_real_distribution<double> cost(0, 1);
  for (int round = 0; round < 2000; ++round) {
    const int layers = 2 + static_cast<int>(random() % 8);
    const int stages = 1 + static_cast<int>(random() % layers);
    std::vector<double> costs;
    for (int i = 0; i < layers; ++i) costs.push_back(cost(random));
    const auto slowest = [&](const std::vector<int>& first) {
      double most = 0;
      for (size_t k = 0; k < first.size(); ++k) {
        double sum = 0;
        const int end = k + 1 < first.size() ? first[k + 1] : layers;
        for (int i = first[k]; i < end; ++i) sum += costs[i];
        most = std::max(most, sum);
      }
      return most;
    };
    ASSERT_NEAR(slowest(Best(costs, stages)), slowest(BruteForce(costs, stages).best()), 1e-12);
  }
}

// The forward of some stages counts twice: compared with every choice of cuts.
TEST(MinimizeSlowest, KnowsWhichStagesRecompute) {
  std::mt19937 random(4);
  for (int round = 0; round < 3000; ++round) {
    const int layers = 2 + static_cast<int>(random() % 8);
    const int stages = 1 + static_cast<int>(random() % std::min(layers, 4));
    std::vector<double> costs, repeats, shares;
    for (int i = 0; i < layers; ++i) {
      costs.push_back(static_cast<double>(random() % 12));
      repeats.push_back(static_cast<double>(random() % 6));
    }
    for (int k = 0; k < stages; ++k) shares.push_back(static_cast<double>(random() % 3) / 2);
    const auto slowest = [&](const std::vector<int>& first) {
      double most = 0;
      for (int k = 0; k < stages; ++k) {
        double sum = 0;
        const int end = k + 1 < stages ? first[k + 1] : layers;
        for (int i = first[k]; i < end; ++i) sum += costs[i] + shares[k] * repeats[i];
        most = std::max(most, sum);
      }
      return most;
    };
    double least = std::numeric_limits<double>::infinity();
    for (unsigned cuts = 0; cuts < (1u << (layers - 1)); ++cuts) {
      std::vector<int> first{0};
      for (int i = 1; i < layers; ++i) {
        if (cuts >> (i - 1) & 1) first.push_back(i);
      }
      if (static_cast<int>(first.size()) == stages) least = std::min(least, slowest(first));
    }
    const auto partition = MinimizeSlowest(costs, repeats, shares);
    ASSERT_TRUE(partition.ok()) << partition.status();
    ASSERT_EQ(slowest(partition->first_layers), least)
        << "costs " << testing::PrintToString(costs) << ", repeats "
        << testing::PrintToString(repeats) << ", shares " << testing::PrintToString(shares);
  }
}

// Compared with every choice of cuts; the largest cell counts first, then the sum of the squares.
TEST(MinimizeSlowestThatFits, EqualsBruteForceOverTheCellsThatFit) {
  std::mt19937 random(6);
  int found = 0, none = 0;
  for (int round = 0; round < 3000; ++round) {
    const int layers = 2 + static_cast<int>(random() % 7);
    const int stages = 1 + static_cast<int>(random() % std::min(layers, 4));
    std::vector<double> costs;
    for (int i = 0; i < layers; ++i) costs.push_back(static_cast<double>(random() % 12));
    CellEnds ends(stages, std::vector<int>(layers));
    for (std::vector<int>& of_stage : ends) {
      for (int i = 0; i < layers; ++i) {
        of_stage[i] = i + static_cast<int>(random() % (layers - i + 1));
      }
    }
    std::optional<std::pair<double, double>> least;
    const auto value = [&](const std::vector<int>& first) {
      std::pair<double, double> slowest_and_squares;
      for (int k = 0; k < stages; ++k) {
        const int end = k + 1 < stages ? first[k + 1] : layers;
        double cell = 0;
        for (int i = first[k]; i < end; ++i) cell += costs[i];
        slowest_and_squares.first = std::max(slowest_and_squares.first, cell);
        slowest_and_squares.second += cell * cell;
      }
      return slowest_and_squares;
    };
    const auto fits = [&](const std::vector<int>& first) {
      for (int k = 0; k < stages; ++k) {
        if ((k + 1 < stages ? first[k + 1] : layers) > ends[k][first[k]]) return false;
      }
      return true;
    };
    for (unsigned cuts = 0; cuts < (1u << (layers - 1)); ++cuts) {
      std::vector<int> first{0};
      for (int i = 1; i < layers; ++i) {
        if (cuts >> (i - 1) & 1) first.push_back(i);
      }
      if (static_cast<int>(first.size()) != stages || !fits(first)) continue;
      if (!least.has_value() || value(first) < *least) least = value(first);
    }
    const auto partition = MinimizeSlowestThatFits(costs, std::vector<double>(layers, 0.0),
                                                   std::vector<double>(stages, 0.0), ends);
    ASSERT_EQ(partition.has_value(), least.has_value());
    ++(least.has_value() ? found : none);
    if (!least.has_value()) continue;
    ASSERT_TRUE(fits(partition->first_layers));
    ASSERT_EQ(value(partition->first_layers), *least) << testing::PrintToString(costs);
  }
  EXPECT_GT(found, 100);
  EXPECT_GT(none, 100);
}

TEST(MinimizeSlowest, BreaksTiesByVarianceThenByEarliestCuts) {
  EXPECT_THAT(Best({4, 1, 1, 1, 1}, 3), ElementsAre(0, 1, 3)) << "4 2 2, not 4 1 3";
  EXPECT_THAT(Best({1, 1, 1}, 2), ElementsAre(0, 1)) << "1 2, not 2 1";
  EXPECT_THAT(Best({0, 0, 0, 0}, 3), ElementsAre(0, 1, 2));
}

TEST(MinimizeSlowest, TakesAThousandStagesOfTenThousandLayers) {
  const size_t stages = kSanitized ? 300 : 1000;
  std::mt19937 random(3);
  std::vector<double> costs;
  for (size_t i = 0; i < 10 * stages; ++i) costs.push_back(1 + static_cast<double>(random() % 10));
  EXPECT_EQ(Best(costs, static_cast<int>(stages)).size(), stages);
}

TEST(MinimizeSlowest, RefusesWhatCannotBe) {
  const auto error = [](const std::vector<double>& costs, int stages) {
    return std::string(MinimizeSlowest(costs, stages).status().message());
  };
  EXPECT_THAT(error({1, 2}, 3), HasSubstr("3 stages for 2 layers"));
  EXPECT_THAT(error({1, 2}, 0), HasSubstr("must be >= 1"));
  EXPECT_THAT(error({}, 1), HasSubstr("1 stages for 0 layers"));
  EXPECT_THAT(error({1, -1}, 1), HasSubstr("cost of layer 1 is -1"));
  EXPECT_THAT(error({std::numeric_limits<double>::quiet_NaN()}, 1), HasSubstr("layer 0 is nan"));
  EXPECT_THAT(error({std::numeric_limits<double>::infinity()}, 1), HasSubstr("layer 0 is inf"));
}

TEST(UniformPartition, DiffersByAtMostOneLayer) {
  EXPECT_THAT(UniformPartition(7, 3)->first_layers, ElementsAre(0, 3, 5));
  EXPECT_THAT(UniformPartition(3, 3)->first_layers, ElementsAre(0, 1, 2));
  EXPECT_THAT(UniformPartition(3, 1)->first_layers, ElementsAre(0));
  EXPECT_FALSE(UniformPartition(3, 4).ok());
}

}  // namespace
}  // namespace stagecoach
