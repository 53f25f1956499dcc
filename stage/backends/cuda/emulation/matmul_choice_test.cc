#include "stage/backends/cuda/matmul/matmul_choice.h"

#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace stagecoach::cuda {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using E = MatmulEpilogue;

constexpr size_t kWorkspace = 1000;

MatmulCandidate Plain(int32_t id) { return {.usable = true, .algorithm = {.id = id}}; }
MatmulCandidate InPlace(int32_t id) {
  return {.usable = true,
          .algorithm = {.id = id, .split_k = 4, .reduction_scheme = kReductionInPlace}};
}

// A library with offers by epilogue, which remembers what it was asked.
struct FakeOffers {
  std::map<E, std::vector<MatmulCandidate>> offers;
  mutable std::vector<E> asked;
  std::vector<MatmulCandidate> operator()(E epilogue) const {
    asked.push_back(epilogue);
    const auto found = offers.find(epilogue);
    return found == offers.end() ? std::vector<MatmulCandidate>() : found->second;
  }
};

const MatmulShape kExpand = {.rows = 3,
                             .in = 7,
                             .out = 16,
                             .type = MatmulType::kBfloat16,
                             .epilogue = MatmulEpilogue::kBiasGelu};

MatmulTable TableWith(const MatmulChoice& choice) {
  MatmulTable table({.card = "a card", .compute_capability = 90});
  table.Add(kExpand, choice);
  return table;
}

TEST(MatmulChoice, WithoutATableTheFirstOfferWithTheMostOfTheEpilogueIsTaken) {
  FakeOffers library = {
      .offers = {{E::kBiasGelu, {InPlace(1)}}, {E::kBias, {InPlace(2), Plain(3), Plain(4)}}},
      .asked = {}};
  const auto taken = TakeOffer(kExpand, nullptr, kWorkspace, library);
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_EQ(taken->fused, E::kBias);
  EXPECT_EQ(taken->index, 1);
  EXPECT_THAT(library.asked, ElementsAre(E::kBiasGelu, E::kBias)) << "the last is the one taken";
}

TEST(MatmulChoice, WithATableTheOfferThatItNamesIsTakenWhereverItStands) {
  FakeOffers library = {
      .offers = {{E::kBiasGelu, {Plain(1)}}, {E::kBias, {Plain(2), Plain(3), Plain(4)}}},
      .asked = {}};
  const MatmulTable table = TableWith({E::kBias, {.id = 4}});
  const auto taken = TakeOffer(kExpand, &table, kWorkspace, library);
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_EQ(taken->fused, E::kBias);
  EXPECT_EQ(taken->index, 2);
  EXPECT_THAT(library.asked, ElementsAre(E::kBias));
}

TEST(MatmulChoice, AShapeThatTheTableHasNotIsTakenAsWithoutOne) {
  FakeOffers library = {.offers = {{E::kNone, {Plain(1), Plain(4)}}}, .asked = {}};
  const MatmulTable table = TableWith({E::kNone, {.id = 4}});
  MatmulShape other = kExpand;
  other.rows = 4;
  const auto taken = TakeOffer(other, &table, kWorkspace, library);
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_EQ(taken->fused, E::kNone);
  EXPECT_EQ(taken->index, 0);
  EXPECT_THAT(library.asked, ElementsAre(E::kBiasGelu, E::kBias, E::kNone));
}

// Taking another one in silence would be other bits under the same fingerprint.
TEST(MatmulChoice, AChoiceThatTheLibraryDoesNotOfferIsRefusedWithTheRemedy) {
  FakeOffers library = {
      .offers = {{E::kBias, {Plain(2), InPlace(3), {.usable = false, .algorithm = {.id = 5}}}}},
      .asked = {}};
  const MatmulAlgorithm wanted[] = {
      {.id = 9}, {.id = 2, .tile = 1}, InPlace(3).algorithm, {.id = 5}};
  for (const MatmulAlgorithm& algorithm : wanted) {
    const MatmulTable table = TableWith({E::kBias, algorithm});
    const absl::Status status = TakeOffer(kExpand, &table, kWorkspace, library).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(AlgorithmText(algorithm)));
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("fused bias, for forward of 3 x 7 by 16, bfloat16, bias_gelu, which is "
                          "none of the library's 3 offers: the table is of another library; make "
                          "one on this card: gpu-operations --matmul-table-out=FILE"));
  }
}

TEST(MatmulChoice, EveryNumberOfAnAlgorithmTellsOffersApart) {
  const MatmulAlgorithm base;
  MatmulAlgorithm id, tile, stages, split, scheme, swizzle, custom, inner, cluster;
  id.id = 9;
  tile.tile = stages.stages = scheme.reduction_scheme = swizzle.swizzle = custom.custom_option = 9;
  split.split_k = 0;
  inner.inner_shape = cluster.cluster = 9;
  for (const MatmulAlgorithm& other :
       {id, tile, stages, split, scheme, swizzle, custom, inner, cluster}) {
    FakeOffers library = {
        .offers = {{E::kNone,
                    {{.usable = true, .algorithm = base}, {.usable = true, .algorithm = other}}}},
        .asked = {}};
    const MatmulTable table = TableWith({E::kNone, other});
    EXPECT_EQ(TakeOffer(kExpand, &table, kWorkspace, library)->index, 1);
  }
}

TEST(MatmulChoice, ALibraryWithoutAnOfferIsNotFound) {
  FakeOffers library;
  EXPECT_EQ(TakeOffer(kExpand, nullptr, kWorkspace, library).status().code(),
            absl::StatusCode::kNotFound);
}

TEST(MatmulChoice, TheFirstStaysUnlessAnotherIsFasterByMoreThanNoise) {
  const std::vector<MatmulCandidate> three = {Plain(1), Plain(2), Plain(3)};
  EXPECT_EQ(ChooseByTime(three, {1.00, 0.98, 0.99}, kWorkspace), 0);
  EXPECT_EQ(ChooseByTime(three, {1.00, 0.96, 0.99}, kWorkspace), 1);
  EXPECT_EQ(ChooseByTime(three, {1.00, 0.90, 0.80}, kWorkspace), 2);
  EXPECT_EQ(ChooseByTime(three, {1.00, 0.80, 0.80}, kWorkspace), 1) << "ties in their order";
  EXPECT_EQ(ChooseByTime({InPlace(1), Plain(2), Plain(3)}, {0.1, 1.0, 0.99}, kWorkspace), 1)
      << "the first that may be taken";
  EXPECT_EQ(ChooseByTime({InPlace(1)}, {0.1}, kWorkspace), -1);
  EXPECT_EQ(ChooseByTime({}, {}, kWorkspace), -1);
}

TEST(MatmulChoice, WhatWasNotTimedIsNotChosen) {
  constexpr double kNot = std::numeric_limits<double>::quiet_NaN();
  const std::vector<MatmulCandidate> three = {Plain(1), Plain(2), Plain(3)};
  EXPECT_EQ(ChooseByTime(three, {1.0, kNot, 0.5}, kWorkspace), 2);
  EXPECT_EQ(ChooseByTime(three, {kNot, 1.0, 0.99}, kWorkspace), 2) << "the library refused its own";
  EXPECT_EQ(ChooseByTime(three, {kNot, 0.0, -1.0}, kWorkspace), 0);
}

MatmulCandidate AnyCandidate(std::mt19937_64& random) {
  MatmulCandidate candidate = {.usable = random() % 4 != 0, .workspace_bytes = random() % 1200};
  candidate.algorithm.id = static_cast<int32_t>(random() % 4);
  candidate.algorithm.split_k = static_cast<int32_t>(random() % 3);
  candidate.algorithm.reduction_scheme = static_cast<uint32_t>(random() % 5);
  return candidate;
}

TEST(MatmulChoice, OfAnyOffersTheChoiceMayBeTakenAndNothingIsClearlyFaster) {
  for (uint64_t seed = 0; seed < 5000; ++seed) {
    std::mt19937_64 random(seed);
    std::vector<MatmulCandidate> candidates;
    std::vector<double> seconds;
    for (uint64_t i = random() % 8; i > 0; --i) {
      candidates.push_back(AnyCandidate(random));
      const bool timed = random() % 5 != 0;
      seconds.push_back(timed ? 1.0 + 0.01 * static_cast<double>(random() % 8)
                              : std::numeric_limits<double>::quiet_NaN());
    }
    const int first = ChooseCandidate(candidates, kWorkspace);
    const int chosen = ChooseByTime(candidates, seconds, kWorkspace);
    ASSERT_EQ(chosen < 0, first < 0) << "seed " << seed;
    if (chosen < 0) continue;
    const auto place = static_cast<size_t>(chosen);
    EXPECT_TRUE(MayTake(candidates[place], kWorkspace)) << "seed " << seed;
    for (size_t i = 0; i < candidates.size(); ++i) {
      if (!MayTake(candidates[i], kWorkspace) || std::isnan(seconds[i])) continue;
      ASSERT_FALSE(std::isnan(seconds[place])) << "seed " << seed;
      if (chosen == first) {
        EXPECT_GE(seconds[i] * (1 + kFasterBy), seconds[place]) << "seed " << seed;
        continue;
      }
      EXPECT_GE(seconds[i], seconds[place]) << "seed " << seed;
      EXPECT_TRUE(i >= place || seconds[i] > seconds[place]) << "seed " << seed;
    }
    const double own = seconds[static_cast<size_t>(first)];
    const bool another = chosen != first && !std::isnan(own);
    EXPECT_TRUE(!another || seconds[place] * (1 + kFasterBy) < own) << "seed " << seed;
  }
}

}  // namespace
}  // namespace stagecoach::cuda
