#include "stage/data/cache/token_cache.h"

#include "base/testing/temporary_folder.h"
#include "base/threads/work_words.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace stagecoach {
namespace {

using testing::ElementsAre;

// By what every source of tokens goes through.
TEST(TokenCache, TellsHowMuchOfAFileIsEncoded) {
  const TemporaryFolder folder;
  const TokenCacheKey key{std::string(64, 'a'), std::string(64, 'b')};
  const EncodedFile file{.where = "data.x = \"a/de.txt\"", .name = "de.txt", .bytes = 1000};
  WorkWords words;
  const WorkWordsScope scope(&words);
  std::vector<std::string> told;
  const auto make = [&](TakeIds take) -> absl::Status {
    told.push_back(words.words());
    for (const int64_t bytes : {419, 1000}) {
      const absl::Status taken = take(std::vector<int32_t>{1, 2}, bytes);
      if (!taken.ok()) return taken;
      told.push_back(words.words());
    }
    return absl::OkStatus();
  };
  const auto made = MadeOnce(folder.File("cache"), file, key, 3, make);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ((*made)->tokens(), 4);
  EXPECT_THAT(told,
              ElementsAre("encodes de.txt: 0 %", "encodes de.txt: 41 %", "encodes de.txt: 100 %"));
  words.Tell("");
  const auto found = MadeOnce(folder.File("cache"), file, key, 3, make);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ((*found)->tokens(), 4);
  EXPECT_EQ(told.size(), 3u) << "it is found";
  EXPECT_EQ(words.words(), "");
}

}  // namespace
}  // namespace stagecoach
