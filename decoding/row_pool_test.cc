// Rows of hypotheses beside lists that are copied, and beside the texts of a beam search.
#include "decoding/row_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "base/testing/status_is.h"
#include "decoding/beam_search.h"
#include "decoding/toy_model_testing.h"

namespace stagecoach {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;

HypothesisId MustExtend(RowPool& pool, std::optional<HypothesisId> parent = std::nullopt) {
  const auto id = pool.Extend(parent);
  EXPECT_TRUE(id.ok()) << id.status();
  return id.value_or(HypothesisId());
}

// Every hypothesis has a copy of its rows.
struct PlainPool {
  explicit PlainPool(int32_t rows) : size(rows) {}

  std::set<int32_t> Free() const {
    std::set<int32_t> free;
    for (int32_t row = 0; row < size; ++row) free.insert(row);
    for (const auto& [id, rows] : held) {
      for (const int32_t row : rows) free.erase(row);
    }
    return free;
  }

  int32_t size;
  std::map<HypothesisId, std::vector<int32_t>> held;
};

TEST(RowPool, IsThePoolOfCopiedLists) {
  int dry = 0;
  for (uint32_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const auto size = static_cast<int32_t>(1 + random() % 60);
    const uint32_t releases = 2 + seed % 3;  // of 8 actions
    RowPool pool(size);
    PlainPool plain(size);
    const auto any = [&] {
      return std::next(plain.held.begin(), static_cast<int64_t>(random() % plain.held.size()));
    };
    const auto release = [&](HypothesisId id) {
      pool.Release(id);
      plain.held.erase(id);
    };
    for (int action = 0; action < 800; ++action) {
      if (!plain.held.empty() && random() % 8 < releases) {
        release(any()->first);
      } else {
        std::optional<HypothesisId> parent;
        if (!plain.held.empty() && random() % 8 > 0) parent = any()->first;
        std::vector<int32_t> expected;
        if (parent) expected = plain.held[*parent];
        const std::set<int32_t> free = plain.Free();
        const auto id = pool.Extend(parent);
        ASSERT_EQ(id.ok(), !free.empty());
        dry += !id.ok();
        if (id.ok()) {
          expected.push_back(*free.begin());
          ASSERT_TRUE(plain.held.emplace(*id, expected).second);
          if (parent && random() % 2 == 0) release(*parent);
        }
      }
      ASSERT_EQ(pool.free(), std::ssize(plain.Free()));
      for (const auto& [id, rows] : plain.held) ASSERT_THAT(pool.rows(id), ElementsAreArray(rows));
    }
    while (!plain.held.empty()) release(any()->first);
    EXPECT_EQ(pool.free(), size);
  }
  EXPECT_GT(dry, 100);
}

TEST(RowPool, SharesTheRowsOfTheParent) {
  RowPool pool(6);
  const HypothesisId root = MustExtend(pool);
  const HypothesisId a = MustExtend(pool, root);
  const HypothesisId b = MustExtend(pool, root);
  const HypothesisId c = MustExtend(pool, b);
  EXPECT_THAT(pool.rows(root), ElementsAre(0));
  EXPECT_THAT(pool.rows(a), ElementsAre(0, 1));
  EXPECT_THAT(pool.rows(b), ElementsAre(0, 2));
  EXPECT_THAT(pool.rows(c), ElementsAre(0, 2, 3));
  EXPECT_EQ(pool.free(), 2);
}

TEST(RowPool, FreesARowWhenTheLastHypothesisWithItIsReleased) {
  RowPool pool(4);
  const HypothesisId root = MustExtend(pool);
  const HypothesisId a = MustExtend(pool, root);
  const HypothesisId b = MustExtend(pool, root);
  pool.Release(root);
  EXPECT_EQ(pool.free(), 1);
  pool.Release(a);
  EXPECT_EQ(pool.free(), 2);
  EXPECT_THAT(pool.rows(b), ElementsAre(0, 2));
  // The lowest free row, with another one of the same number before it gone.
  EXPECT_THAT(pool.rows(MustExtend(pool, b)), ElementsAre(0, 2, 1));
  pool.Release(b);
  EXPECT_EQ(pool.free(), 1);
}

TEST(RowPool, TakesTheLowestFreeRow) {
  RowPool pool(5);
  std::vector<HypothesisId> ids;
  for (int i = 0; i < 5; ++i) ids.push_back(MustExtend(pool));
  for (const int i : {3, 0, 4, 1}) pool.Release(ids[i]);
  for (const int32_t row : {0, 1, 3, 4}) EXPECT_THAT(pool.rows(MustExtend(pool)), ElementsAre(row));
}

TEST(RowPool, ThatIsDryRefusesAndStaysAsItIs) {
  RowPool pool(2);
  const HypothesisId root = MustExtend(pool);
  const HypothesisId child = MustExtend(pool, root);
  const auto dry =
      StatusIs(absl::StatusCode::kResourceExhausted, "all 2 rows of keys and values are in use");
  EXPECT_THAT(pool.Extend(child).status(), dry);
  EXPECT_THAT(pool.Extend(std::nullopt).status(), dry);
  EXPECT_THAT(pool.rows(child), ElementsAre(0, 1));
  pool.Release(child);
  EXPECT_THAT(pool.rows(MustExtend(pool, root)), ElementsAre(0, 1));
  EXPECT_FALSE(RowPool(0).Extend(std::nullopt).ok());
}

TEST(RowPool, DoesNotCopyTheListForTheFirstChild) {
  RowPool pool(2000);
  HypothesisId last = MustExtend(pool);
  int moves = 0;
  const int32_t* list = pool.rows(last).data();
  for (int i = 1; i < 2000; ++i) {
    const HypothesisId child = MustExtend(pool, last);
    pool.Release(last);
    last = child;
    moves += pool.rows(last).data() != list;
    list = pool.rows(last).data();
  }
  EXPECT_EQ(pool.rows(last).size(), 2000u);
  EXPECT_LE(moves, 20);  // when the vector grows
  EXPECT_EQ(pool.free(), 0);
}

// The tokens lie in the pool as keys and values do.
TEST(RowPool, HoldsTheTextsOfABeamSearch) {
  for (uint32_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(seed);
    const ToyModel model{.seed = seed, .vocabulary = 12};
    BeamSearch search({.beam = 4, .most_tokens = 30, .end = 0});
    RowPool pool(8 * 30);
    std::vector<int32_t> written(8 * 30);
    const auto text = [&](HypothesisId id) {
      std::vector<int32_t> tokens;
      for (const int32_t row : pool.rows(id)) tokens.push_back(written[row]);
      return tokens;
    };
    std::vector<HypothesisId> live;  // none: the one without tokens
    std::vector<std::vector<int32_t>> texts(1);
    while (!search.over()) {
      std::vector<std::vector<Candidate>> candidates;
      for (const auto& tokens : texts) candidates.push_back(model.Next(tokens, 8));
      std::vector<HypothesisId> next;
      std::vector<std::vector<int32_t>> next_texts;
      for (const auto& [parent, token] : search.Advance(candidates)) {
        next.push_back(live.empty() ? MustExtend(pool) : MustExtend(pool, live[parent]));
        written[next.back().value] = token;
        next_texts.push_back(texts[parent]);
        next_texts.back().push_back(token);
      }
      for (const HypothesisId id : live) pool.Release(id);
      live = std::move(next);
      texts = std::move(next_texts);
      for (size_t i = 0; i < live.size(); ++i) ASSERT_EQ(text(live[i]), texts[i]);
    }
    EXPECT_EQ(pool.free(), 8 * 30);
  }
}

TEST(RowPool, DiesOfAHypothesisThatIsNotHeld) {
  RowPool pool(3);
  const HypothesisId root = MustExtend(pool);
  MustExtend(pool, root);
  pool.Release(root);  // its row is still in use
  EXPECT_DEATH(pool.Release(root), "no hypothesis ends with row 0");
  EXPECT_DEATH(static_cast<void>(pool.Extend(root)), "no hypothesis ends with row 0");
  EXPECT_DEATH(static_cast<void>(pool.rows(HypothesisId(2))), "no hypothesis ends with row 2");
  EXPECT_DEATH(pool.Release(HypothesisId()), "no hypothesis ends with row -1");
}

}  // namespace
}  // namespace stagecoach
