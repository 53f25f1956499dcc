#include "coordinator/job/view/class_measures.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"

namespace stagecoach {
namespace {

double UnionOf(const ClassCounts& counts) { return counts.targets + counts.guesses - counts.right; }

// Of classes that a measure can be computed of: `whole` above 0.
template <typename Whole>
std::vector<Measure> SharesOfClasses(const Objective& objective,
                                     std::span<const ClassCounts> counts, const std::string& name,
                                     Whole whole) {
  std::vector<Measure> shares;
  for (size_t i = 0; i < counts.size(); ++i) {
    const double all = whole(counts[i]);
    if (objective.ignored == static_cast<int64_t>(i) || !(all > 0)) continue;
    shares.push_back({absl::StrCat(name, "/", i), counts[i].right / all});
  }
  return shares;
}

void Append(const std::vector<Measure>& more, std::vector<Measure>* measures) {
  measures->insert(measures->end(), more.begin(), more.end());
}

}  // namespace

void AddCounts(std::span<const ClassCounts> counts, std::vector<ClassCounts>* sum) {
  sum->resize(std::max(sum->size(), counts.size()));
  for (size_t i = 0; i < counts.size(); ++i) {
    ClassCounts& total = (*sum)[i];
    total.right += counts[i].right;
    total.targets += counts[i].targets;
    total.guesses += counts[i].guesses;
  }
}

void AddMeanIou(const Objective& objective, std::span<const ClassCounts> counts,
                std::vector<Measure>* measures) {
  if (!objective.has("mean_iou")) return;
  const std::vector<Measure> shares = SharesOfClasses(objective, counts, "iou", UnionOf);
  if (shares.empty()) return;
  double sum = 0;
  for (const Measure& share : shares) sum += share.value;
  measures->push_back({"mean_iou", sum / static_cast<double>(shares.size())});
}

void AddClassMeasures(const Objective& objective, std::span<const ClassCounts> counts,
                      std::vector<Measure>* measures) {
  AddMeanIou(objective, counts, measures);
  if (!objective.has("per_class")) return;
  if (objective.has("accuracy")) {
    Append(SharesOfClasses(objective, counts, "accuracy",
                           [](const ClassCounts& one) { return one.targets; }),
           measures);
  }
  if (objective.has("mean_iou")) {
    Append(SharesOfClasses(objective, counts, "iou", UnionOf), measures);
  }
}

}  // namespace stagecoach
