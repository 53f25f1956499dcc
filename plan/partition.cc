#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/errors/status.h"
#include "plan/cell_ends.h"
#include "plan/plan.h"

namespace stagecoach {
namespace {

absl::Status CheckStages(int64_t layers, int stages) {
  if (stages < 1) {
    return absl::InvalidArgumentError(absl::StrCat("partition: ", stages, " stages; must be >= 1"));
  }
  if (stages > layers) {
    return absl::InvalidArgumentError(absl::StrCat("partition: ", stages, " stages for ", layers,
                                                   " layers; a stage needs a layer: use at most ",
                                                   layers, " stages"));
  }
  return absl::OkStatus();
}

std::vector<double> PrefixSums(std::span<const double> values) {
  std::vector<double> sums(values.size() + 1, 0.0);
  for (size_t i = 0; i < values.size(); ++i) sums[i + 1] = sums[i] + values[i];
  return sums;
}

// Dynamic programs over prefixes and suffixes of the layers. Cell(k, i, j) = layers [i, j) on
// stage k.
class Partitioner {
 public:
  Partitioner(std::span<const double> costs, std::span<const double> repeats,
              std::span<const double> shares)
      : layers_(static_cast<int>(costs.size())),
        stages_(static_cast<int>(shares.size())),
        costs_(PrefixSums(costs)),
        repeats_(PrefixSums(repeats)),
        shares_(shares) {}

  Partition Run() const { return SmoothestWithin(SmallestMaximum()); }

  std::optional<Partition> RunThatFits(const CellEnds& ends) const {
    const double slowest = SmallestMaximumThatFits(ends);
    if (slowest == std::numeric_limits<double>::infinity()) return std::nullopt;
    return SmoothestWithin(slowest, &ends);
  }

 private:
  double Cell(int k, int i, int j) const {
    return costs_[j] - costs_[i] + shares_[k] * (repeats_[j] - repeats_[i]);
  }

  // best[j]: the smallest possible largest cell of the first j layers in k cells. It grows with j,
  // and the last cell shrinks with its start, so the best start is where the two cross.
  double SmallestMaximum() const {
    std::vector<double> best(layers_ + 1, std::numeric_limits<double>::infinity());
    for (int j = 1; j <= layers_; ++j) best[j] = Cell(0, 0, j);
    for (int k = 2; k <= stages_; ++k) {
      std::vector<double> next(layers_ + 1, std::numeric_limits<double>::infinity());
      for (int j = k; j <= layers_; ++j) {
        int low = k - 1, high = j - 1;  // start of the last cell
        while (low < high) {
          const int middle = low + (high - low) / 2;
          if (best[middle] >= Cell(k - 1, middle, j)) {
            high = middle;
          } else {
            low = middle + 1;
          }
        }
        next[j] = std::max(best[low], Cell(k - 1, low, j));
        if (low > k - 1) {
          next[j] = std::min(next[j], std::max(best[low - 1], Cell(k - 1, low - 1, j)));
        }
      }
      best = std::move(next);
    }
    return best[layers_];
  }

  // Cells that end no later than `ends` says; infinite if there are none.
  double SmallestMaximumThatFits(const CellEnds& ends) const {
    const double infinity = std::numeric_limits<double>::infinity();
    std::vector<double> best(layers_ + 1, infinity);  // of layers [0, j) on the stages so far
    best[0] = 0;
    for (int k = 0; k < stages_; ++k) {
      std::vector<double> next(layers_ + 1, infinity);
      for (int i = k; i < layers_; ++i) {
        for (int j = i + 1; best[i] != infinity && j <= ends[k][i]; ++j) {
          next[j] = std::min(next[j], std::max(best[i], Cell(k, i, j)));
        }
      }
      best = std::move(next);
    }
    return best[layers_];
  }

  // Among the partitions with no cell over `limit` or behind its end: least sum of squares, then
  // earliest cuts. Goes from the end, so that the cut of a stage is the first that can be completed
  // at the least sum.
  Partition SmoothestWithin(double limit, const CellEnds* ends = nullptr) const {
    const double infinity = std::numeric_limits<double>::infinity();
    std::vector<double> least(layers_ + 1, infinity);  // of layers [i, end) in the stages to come
    least[layers_] = 0;
    std::vector<std::vector<int>> cell_end(stages_, std::vector<int>(layers_ + 1, -1));
    for (int k = stages_ - 1; k >= 0; --k) {
      std::vector<double> next(layers_ + 1, infinity);
      for (int i = k; i < layers_; ++i) {
        const int end = ends == nullptr ? layers_ : (*ends)[k][i];
        for (int j = i + 1; j <= end && Cell(k, i, j) <= limit; ++j) {
          if (least[j] == infinity) continue;
          const double sum = Cell(k, i, j) * Cell(k, i, j) + least[j];
          if (sum >= next[i]) continue;
          next[i] = sum;
          cell_end[k][i] = j;
        }
      }
      least = std::move(next);
    }
    Partition partition;
    int first = 0;
    for (int k = 0; k < stages_; ++k) {
      partition.first_layers.push_back(first);
      first = cell_end[k][first];
    }
    return partition;
  }

  const int layers_;
  const int stages_;
  const std::vector<double> costs_, repeats_;  // prefix sums
  const std::span<const double> shares_;
};

}  // namespace

absl::StatusOr<Partition> MinimizeSlowest(std::span<const double> costs,
                                          std::span<const double> repeats,
                                          std::span<const double> shares) {
  CHECK_EQ(costs.size(), repeats.size()) << "one repeat per layer";
  RETURN_IF_ERROR(CheckStages(static_cast<int64_t>(costs.size()), static_cast<int>(shares.size())));
  constexpr double kLargest = 1e100;  // squares and sums stay finite
  for (size_t i = 0; i < 2 * costs.size(); ++i) {
    const size_t layer = i / 2;
    const double cost = i % 2 == 0 ? costs[layer] : repeats[layer];
    if (cost >= 0 && cost <= kLargest) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("partition: cost of layer ", layer, " is ", cost, "; must be a number >= 0"));
  }
  for (double share : shares) CHECK(share >= 0 && share <= 1) << "share " << share;
  return Partitioner(costs, repeats, shares).Run();
}

std::optional<Partition> MinimizeSlowestThatFits(std::span<const double> costs,
                                                 std::span<const double> repeats,
                                                 std::span<const double> shares,
                                                 const CellEnds& ends) {
  CHECK_EQ(costs.size(), repeats.size()) << "one repeat per layer";
  CHECK_EQ(shares.size(), ends.size()) << "one list of ends per stage";
  return Partitioner(costs, repeats, shares).RunThatFits(ends);
}

absl::StatusOr<Partition> MinimizeSlowest(std::span<const double> costs, int stages) {
  RETURN_IF_ERROR(CheckStages(static_cast<int64_t>(costs.size()), stages));
  const std::vector<double> no_repeats(costs.size(), 0.0), shares(stages, 0.0);
  return MinimizeSlowest(costs, no_repeats, shares);
}

absl::StatusOr<Partition> UniformPartition(int layers, int stages) {
  RETURN_IF_ERROR(CheckStages(layers, stages));
  Partition partition;
  int first = 0;
  for (int stage = 0; stage < stages; ++stage) {
    partition.first_layers.push_back(first);
    first += layers / stages + (stage < layers % stages ? 1 : 0);
  }
  return partition;
}

}  // namespace stagecoach
