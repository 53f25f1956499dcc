#include "stage/backends/cuda/matmul/matmul_tuning.h"

#include <cmath>
#include <map>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace stagecoach::cuda {
namespace {

using testing::ElementsAre;
using E = MatmulEpilogue;

MatmulOffer Offer(E fused, int32_t id) {
  return {fused, {.usable = true, .algorithm = {.id = id}, .workspace_bytes = 10}};
}

// A card whose calls make the products of `shapes`, and take as long as the algorithm that was
// taken for the first of them is said to. Written down is what was timed.
class FakeTrials final : public MatmulTrials {
 public:
  std::vector<MatmulShape> shapes = {{.rows = 3, .in = 5, .out = 8, .epilogue = E::kBias}};
  std::vector<MatmulOffer> offers;
  std::map<int32_t, double> seconds;  // by algorithm; of what is not there: 1
  int32_t refused = -1, broken = -1;  // algorithms
  std::vector<std::string> timed;
  int forgotten = 0;

  absl::StatusOr<double> Time() {
    ran_ = shapes;
    if (!taken_.has_value()) {
      timed.emplace_back("own");
      return 1.0;
    }
    const int32_t id = taken_->second.algorithm.id;
    if (id == broken) return absl::InternalError("the card is lost");
    timed.push_back(absl::StrCat(id, " ", EpilogueName(taken_->second.fused)));
    const auto found = seconds.find(id);
    return found == seconds.end() ? 1.0 : found->second;
  }

  MatmulTableHeader Header() const override {
    return {
        .card = "a card", .compute_capability = 90, .library_version = 7, .workspace_bytes = 100};
  }
  std::vector<MatmulShape> TakeShapes() override { return std::exchange(ran_, {}); }
  std::vector<MatmulOffer> Offers(const MatmulShape&) override { return offers; }
  absl::Status Take(const MatmulShape& shape, const MatmulChoice& choice) override {
    taken_ = {shape, choice};
    return absl::OkStatus();
  }
  bool Refused(const MatmulShape& shape) const override {
    return taken_.has_value() && taken_->first == shape && taken_->second.algorithm.id == refused;
  }
  void Forget(const MatmulShape&) override {
    ++forgotten;
    taken_.reset();
  }

 private:
  std::vector<MatmulShape> ran_;
  std::optional<std::pair<MatmulShape, MatmulChoice>> taken_;
};

class MatmulTuning : public testing::Test {
 protected:
  absl::StatusOr<std::vector<TunedProduct>> Tune() {
    return TuneMatmul(
        trials_, [this] { return trials_.Time(); }, table_);
  }
  FakeTrials trials_;
  MatmulTable table_{trials_.Header()};
};

TEST_F(MatmulTuning, TimesEveryOfferOfEveryEpilogueAndKeepsTheFastest) {
  trials_.offers = {Offer(E::kBias, 1), Offer(E::kBias, 2), Offer(E::kNone, 1), Offer(E::kNone, 3)};
  trials_.seconds = {{1, 1.0}, {2, 0.9}, {3, 0.5}};
  const auto tuned = Tune();
  ASSERT_TRUE(tuned.ok()) << tuned.status();
  EXPECT_THAT(trials_.timed, ElementsAre("own", "1 bias", "2 bias", "1 none", "3 none"));
  ASSERT_EQ(tuned->size(), 1u);
  EXPECT_EQ(tuned->front().first, 0);
  EXPECT_EQ(tuned->front().chosen, 3);
  ASSERT_NE(table_.Find(trials_.shapes[0]), nullptr);
  EXPECT_EQ(*table_.Find(trials_.shapes[0]), (MatmulChoice{E::kNone, {.id = 3}}));
  EXPECT_EQ(trials_.forgotten, 1) << "what runs next is not the last that was tried";
}

// So that what a later version of the program would take does not matter.
TEST_F(MatmulTuning, TheFirstThatStaysIsInTheTableToo) {
  trials_.offers = {Offer(E::kBias, 1), Offer(E::kBias, 2)};
  trials_.seconds = {{2, 0.98}};
  ASSERT_TRUE(Tune().ok());
  EXPECT_EQ(*table_.Find(trials_.shapes[0]), (MatmulChoice{E::kBias, {.id = 1}}));
}

TEST_F(MatmulTuning, OffersThatMayNotBeTakenAreNotTimed) {
  MatmulOffer unusable = Offer(E::kBias, 1), large = Offer(E::kBias, 2), split = Offer(E::kBias, 3);
  unusable.candidate.usable = false;
  large.candidate.workspace_bytes = 101;
  split.candidate.algorithm.split_k = 4;
  split.candidate.algorithm.reduction_scheme = kReductionInPlace;
  trials_.offers = {unusable, large, split, Offer(E::kBias, 4)};
  ASSERT_TRUE(Tune().ok());
  EXPECT_THAT(trials_.timed, ElementsAre("own", "4 bias"));
  EXPECT_EQ(table_.Find(trials_.shapes[0])->algorithm.id, 4);
}

TEST_F(MatmulTuning, OfOffersWithTheSameNumbersTheFirstThatMayBeTakenIsTimed) {
  MatmulOffer large = Offer(E::kBias, 1);
  large.candidate.workspace_bytes = 101;
  trials_.offers = {large, Offer(E::kBias, 1), Offer(E::kBias, 1), Offer(E::kNone, 1)};
  const auto tuned = Tune();
  ASSERT_TRUE(tuned.ok());
  EXPECT_THAT(trials_.timed, ElementsAre("own", "1 bias", "1 none"));
  EXPECT_TRUE(std::isnan(tuned->front().seconds[0]));
  EXPECT_FALSE(std::isnan(tuned->front().seconds[1]));
  EXPECT_TRUE(std::isnan(tuned->front().seconds[2]));
}

TEST_F(MatmulTuning, AnOfferThatTheLibraryRefusesToRunIsNotChosen) {
  trials_.offers = {Offer(E::kBias, 1), Offer(E::kBias, 2), Offer(E::kBias, 3)};
  trials_.seconds = {{2, 0.1}, {3, 0.5}};
  trials_.refused = 2;
  ASSERT_TRUE(Tune().ok());
  EXPECT_EQ(table_.Find(trials_.shapes[0])->algorithm.id, 3);
}

TEST_F(MatmulTuning, AShapeThatTheTableHasIsNotTimedAgain) {
  trials_.offers = {Offer(E::kBias, 1)};
  ASSERT_TRUE(Tune().ok());
  trials_.timed.clear();
  const auto again = Tune();
  ASSERT_TRUE(again.ok());
  EXPECT_TRUE(again->empty());
  EXPECT_THAT(trials_.timed, ElementsAre("own"));
}

TEST_F(MatmulTuning, EveryProductOfACallHasAChoice) {
  trials_.shapes.push_back({.rows = 4, .in = 5, .out = 8});
  trials_.offers = {Offer(E::kNone, 1), Offer(E::kNone, 2)};
  ASSERT_TRUE(Tune().ok());
  EXPECT_EQ(table_.size(), 2u);
  EXPECT_EQ(trials_.forgotten, 2);
}

TEST_F(MatmulTuning, ACallWithoutAProductAndAShapeWithoutAnOfferLeaveTheTable) {
  EXPECT_EQ(Tune()->front().chosen, -1);
  trials_.shapes.clear();
  EXPECT_TRUE(Tune()->empty());
  EXPECT_EQ(table_.size(), 0u);
}

TEST_F(MatmulTuning, AFaultOfTheCardEndsIt) {
  trials_.offers = {Offer(E::kBias, 1), Offer(E::kBias, 2)};
  trials_.broken = 2;
  EXPECT_EQ(Tune().status().message(), "the card is lost");
  EXPECT_EQ(table_.size(), 0u);
  EXPECT_EQ(trials_.forgotten, 1);
}

}  // namespace
}  // namespace stagecoach::cuda
