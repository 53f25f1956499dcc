// By hand: three classes of which one never occurs.
#include "coordinator/job/view/class_measures.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "operations/losses/cross_entropy.h"

namespace stagecoach {
namespace {

using testing::ElementsAre;

Objective Counting(const CrossEntropyAttributes& attributes) {
  return {.operation = "cross_entropy", .attributes = ToAttributes(attributes)};
}

// Ten targets: six of class 0, of which four were found; four of class 1, of which three were.
const std::vector<ClassCounts> kCounts = {{4, 6, 5}, {3, 4, 5}, {0, 0, 0}};
constexpr double kIou0 = 4.0 / 7, kIou1 = 3.0 / 6;

std::vector<Measure> MeasuresOf(const Objective& objective,
                                const std::vector<ClassCounts>& counts) {
  std::vector<Measure> measures;
  AddClassMeasures(objective, counts, &measures);
  return measures;
}

TEST(ClassMeasuresTest, TheMeanIsOverTheClassesThatOccur) {
  EXPECT_THAT(MeasuresOf(Counting({.mean_iou = true}), kCounts),
              ElementsAre(Measure{"mean_iou", (kIou0 + kIou1) / 2}));
  const std::vector<ClassCounts> guessed = {{4, 6, 5}, {3, 4, 4}, {0, 0, 1}};
  EXPECT_THAT(MeasuresOf(Counting({.mean_iou = true}), guessed),
              ElementsAre(Measure{"mean_iou", (kIou0 + 3.0 / 5 + 0) / 3}))
      << "one that is guessed and never right has 0";
}

TEST(ClassMeasuresTest, OfEachClassWhatIsMeasuredOfAll) {
  EXPECT_THAT(
      MeasuresOf(Counting({.accuracy = true, .mean_iou = true, .per_class = true}), kCounts),
      ElementsAre(Measure{"mean_iou", (kIou0 + kIou1) / 2}, Measure{"accuracy/0", 4.0 / 6},
                  Measure{"accuracy/1", 3.0 / 4}, Measure{"iou/0", kIou0},
                  Measure{"iou/1", kIou1}));
  EXPECT_THAT(MeasuresOf(Counting({.accuracy = true, .per_class = true}), kCounts),
              ElementsAre(Measure{"accuracy/0", 4.0 / 6}, Measure{"accuracy/1", 3.0 / 4}));
  EXPECT_THAT(MeasuresOf(Counting({.mean_iou = true, .per_class = true}), kCounts),
              ElementsAre(Measure{"mean_iou", (kIou0 + kIou1) / 2}, Measure{"iou/0", kIou0},
                          Measure{"iou/1", kIou1}));
}

TEST(ClassMeasuresTest, TheIgnoredClassIsNoneOfThem) {
  Objective objective = Counting({.accuracy = true, .mean_iou = true, .per_class = true});
  objective.ignored = 1;  // nothing is a target of it, and it may be guessed
  EXPECT_THAT(MeasuresOf(objective, {{4, 6, 4}, {0, 0, 2}}),
              ElementsAre(Measure{"mean_iou", 4.0 / 6}, Measure{"accuracy/0", 4.0 / 6},
                          Measure{"iou/0", 4.0 / 6}));
}

TEST(ClassMeasuresTest, OfNothingThereIsNoMeasure) {
  const Objective objective = Counting({.accuracy = true, .mean_iou = true, .per_class = true});
  EXPECT_TRUE(MeasuresOf(objective, {}).empty());
  EXPECT_TRUE(MeasuresOf(objective, {{0, 0, 0}}).empty());
  EXPECT_TRUE(MeasuresOf(Counting({.accuracy = true}), kCounts).empty());
}

TEST(ClassMeasuresTest, CountsOfBatchesAddUp) {
  std::vector<ClassCounts> sum;
  AddCounts({}, &sum);
  EXPECT_TRUE(sum.empty());
  AddCounts(kCounts, &sum);
  AddCounts(std::vector<ClassCounts>{{1, 1, 2}, {0, 1, 0}, {0, 0, 0}}, &sum);
  EXPECT_THAT(sum, ElementsAre(ClassCounts{5, 7, 7}, ClassCounts{3, 5, 5}, ClassCounts{}));
}

}  // namespace
}  // namespace stagecoach
