// Words that come again: kept ids change no answer, of any number of threads.
#include "stage/tokens/byte_level/word_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "absl/strings/str_cat.h"
#include "stage/tokens/tokenizer.h"
#include "stage/tokens/tokenizer_json_testing.h"

namespace stagecoach {
namespace {

using testing::ElementsAre;

TEST(WordCacheTest, GivesTheIdsOfAKeptWord) {
  WordCache cache;
  std::vector<int32_t> ids = {1};
  EXPECT_FALSE(cache.Append("word", &ids));
  cache.Keep("word", std::vector<int32_t>{7, 8});
  cache.Keep("none", std::vector<int32_t>{});
  EXPECT_TRUE(cache.Append("word", &ids));
  EXPECT_TRUE(cache.Append("none", &ids));
  EXPECT_FALSE(cache.Append("wor", &ids));
  EXPECT_FALSE(cache.Append("", &ids));
  EXPECT_THAT(ids, ElementsAre(1, 7, 8));
}

TEST(WordCacheTest, WordsThatAreTooLongAreNotKept) {
  WordCache cache;
  std::vector<int32_t> ids;
  const std::string fits(70, 'a'), larger(71, 'a');
  for (const std::string& word : {fits, larger}) cache.Keep(word, std::vector<int32_t>{5});
  cache.Keep("many", std::vector<int32_t>(15, 3));
  cache.Keep("few", std::vector<int32_t>(14, 3));
  EXPECT_TRUE(cache.Append(fits, &ids));
  EXPECT_FALSE(cache.Append(larger, &ids));
  EXPECT_FALSE(cache.Append("many", &ids));
  EXPECT_TRUE(cache.Append("few", &ids));
  EXPECT_EQ(ids.size(), 15);
}

// More words than slots: each is its own or gone.
TEST(WordCacheTest, AWordTakesTheSlotOfAnother) {
  WordCache cache;
  constexpr int32_t kWords = 50'000;
  for (int32_t i = 0; i < kWords; ++i) cache.Keep(absl::StrCat(i), std::vector<int32_t>{i});
  int kept = 0;
  for (int32_t i = 0; i < kWords; ++i) {
    std::vector<int32_t> ids;
    if (!cache.Append(absl::StrCat(i), &ids)) continue;
    ++kept;
    ASSERT_THAT(ids, ElementsAre(i));
  }
  EXPECT_GT(kept, 5'000);
  EXPECT_LE(kept, 8'192);
}

TEST(WordCacheTest, ThreadsEncodeWithOneTokenizerAtOnce) {
  const auto tokenizer = Tokenizer::Parse(TokenizerJson({{"a", "b"}, {"ab", "c"}}).dump()).value();
  std::string text;
  for (int i = 0; i < 300; ++i) absl::StrAppend(&text, "abc", i % 37, " ab");
  const std::vector<int32_t> ids = tokenizer->Encode(text).value();
  EXPECT_EQ(tokenizer->Encode(text).value(), ids);
  std::vector<std::vector<int32_t>> answers(4);
  std::vector<std::thread> threads;
  for (std::vector<int32_t>& answer : answers) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) answer = tokenizer->Encode(text).value();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::vector<int32_t>& answer : answers) EXPECT_EQ(answer, ids);
}

}  // namespace
}  // namespace stagecoach
