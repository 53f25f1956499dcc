#include "base/named_list.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace stagecoach {
namespace {

using ::testing::ElementsAre;

struct Fruit {
  std::string_view name() const { return called; }
  std::string_view called;
};
constexpr Fruit kApple{"apple"}, kMelon{"melon"}, kPear{"pear"};

TEST(NamedList, IsSortedHoweverItWasGiven) {
  const NamedList<Fruit> list("fruit", {&kPear, &kApple, &kMelon});
  EXPECT_THAT(list.all(), ElementsAre(&kApple, &kMelon, &kPear));
}

TEST(NamedList, FindsEachByItsWholeName) {
  const NamedList<Fruit> list("fruit", {&kPear, &kApple, &kMelon});
  for (const Fruit* fruit : list.all()) EXPECT_EQ(list.Find(fruit->name()).value(), fruit);
  EXPECT_FALSE(list.Find("app").ok());
}

TEST(NamedList, AnswersWithTheNearestNameOrWithAll) {
  const NamedList<Fruit> list("fruit", {&kPear, &kApple});
  const absl::Status near = list.Find("aple").status(), far = list.Find("walnut").status();
  EXPECT_EQ(near.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(near.message(), "there is no fruit \"aple\"; did you mean \"apple\"?");
  EXPECT_EQ(far.message(), "there is no fruit \"walnut\"; known here: apple, pear");
}

TEST(NamedListDeathTest, TwoOfOneNameAreOurBug) {
  constexpr Fruit kOther{"pear"};
  EXPECT_DEATH(NamedList<Fruit>("fruit", {&kPear, &kApple, &kOther}), "a fruit pear twice");
}

}  // namespace
}  // namespace stagecoach
