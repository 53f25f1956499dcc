#include "plan/balanced_cells.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/errors/check.h"

namespace stagecoach {
namespace {

class Balance {
 public:
  Balance(Partition start, std::span<const double> costs, std::span<const double> repeats,
          std::span<const double> shares)
      : partition_(std::move(start)),
        layers_(static_cast<int>(costs.size())),
        costs_(costs),
        repeats_(repeats),
        shares_(shares),
        sums_(static_cast<size_t>(partition_.stages()), 0.0) {
    for (int cell = 0; cell < partition_.cells(); ++cell) {
      for (int i = partition_.first(cell); i < partition_.last(cell, layers_); ++i) {
        Sum(cell) += Cost(cell, i);
      }
    }
  }

  Partition Run() {
    // Each sweep makes the slowest stage faster or the squares smaller; few are needed.
    constexpr int kMostSweeps = 32;
    bool moved = true;
    for (int sweep = 0; moved && sweep < kMostSweeps; ++sweep) {
      moved = false;
      for (int cell = 1; cell < partition_.cells(); ++cell) moved = MoveCut(cell) || moved;
    }
    return std::move(partition_);
  }

 private:
  using Score = std::pair<double, double>;  // the slowest stage, and the sum of squares

  double Cost(int cell, int layer) const {
    return costs_[static_cast<size_t>(layer)] +
           shares_[static_cast<size_t>(cell)] * repeats_[static_cast<size_t>(layer)];
  }
  double& Sum(int cell) { return sums_[static_cast<size_t>(StageOf(partition_.placement, cell))]; }
  Score ScoreNow() const {
    Score score{0, 0};
    for (const double sum : sums_) {
      score.first = std::max(score.first, sum);
      score.second += sum * sum;
    }
    return score;
  }
  // The cut in front of the cell by a layer.
  void Step(int cell, bool down) {
    int& first = partition_.first_layers[static_cast<size_t>(cell)];
    if (!down) --first;
    Sum(cell) += (down ? -1 : 1) * Cost(cell, first);
    Sum(cell - 1) += (down ? 1 : -1) * Cost(cell - 1, first);
    if (down) ++first;
  }
  bool MoveCut(int cell) {
    const int before = partition_.first(cell);
    const Score score = ScoreNow();
    Score best = score;
    int at = before;
    while (partition_.first(cell) - 1 > partition_.first(cell - 1)) Step(cell, /*down=*/false);
    while (true) {
      // Sums of other orders differ in their last bits: that is no gain.
      const Score now = ScoreNow();
      const bool faster = now.first < best.first * (1 - 1e-9);
      const bool smoother = now.first <= best.first && now.second < best.second * (1 - 1e-9);
      if (faster || smoother) {
        best = now;
        at = partition_.first(cell);
      }
      if (partition_.first(cell) + 1 >= partition_.last(cell, layers_)) break;
      Step(cell, /*down=*/true);
    }
    while (partition_.first(cell) > at) Step(cell, /*down=*/false);
    return at != before;
  }

  Partition partition_;
  const int layers_;
  const std::span<const double> costs_, repeats_, shares_;
  std::vector<double> sums_;  // by stage
};

}  // namespace

Partition BalanceStages(Partition start, std::span<const double> costs,
                        std::span<const double> repeats, std::span<const double> shares) {
  CHECK_EQ(costs.size(), repeats.size()) << "one repeat per layer";
  CHECK_EQ(shares.size(), start.first_layers.size()) << "one share per cell";
  return Balance(std::move(start), costs, repeats, shares).Run();
}

}  // namespace stagecoach
