#include "coordinator/job/view/shown_json.h"

#include <cmath>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace stagecoach {
namespace {

TEST(ShownJson, PicturesComeBackAsTheyWere) {
  const std::vector<std::string> files = {std::string("\x89PNG\0\xff", 6), "", "x"};
  EXPECT_EQ(*DecodeShownPictures(EncodeShownPictures(files)), files);
  EXPECT_TRUE(DecodeShownPictures("")->empty()) << "nothing was written";
}

TEST(ShownJson, AnswersComeBackWithTheNamesOfTheirClasses) {
  const ShownAnswers shown = {
      .step = 30,
      .answers = {{1, 0, 0.625}, {1, 2, std::numeric_limits<double>::quiet_NaN()}, {-1, 1, 1}}};
  const auto named = DecodeShownAnswers(EncodeShownAnswers(shown, {"ape", "bee"}));
  ASSERT_TRUE(named.ok()) << named.status();
  EXPECT_EQ(named->step, 30u);
  ASSERT_EQ(named->answers.size(), 3u);
  EXPECT_EQ(named->answers[0].shown.label, 1);
  EXPECT_EQ(named->answers[0].shown.answer, 0);
  EXPECT_EQ(named->answers[0].shown.probability, 0.625);
  EXPECT_EQ(named->answers[0].label_name, "bee");
  EXPECT_EQ(named->answers[0].answer_name, "ape");
  EXPECT_TRUE(std::isnan(named->answers[1].shown.probability));
  EXPECT_EQ(named->answers[1].answer_name, "") << "there are fewer names";
  EXPECT_EQ(named->answers[2].label_name, "") << "a label that is ignored has none";
  EXPECT_EQ(DecodeShownAnswers("")->step, 0u);
}

TEST(ShownJson, TranslationsComeBackAsTheyWere) {
  const ShownAnswers shown = {
      .step = 7,
      .answers = {},
      .translations = {{0, "A \"dog\"", "Ein Hund", "Hünd"}, {3, "", "x", ""}}};
  const auto named = DecodeShownAnswers(EncodeShownAnswers(shown, {}));
  ASSERT_TRUE(named.ok()) << named.status();
  EXPECT_EQ(named->step, 7u);
  EXPECT_EQ(named->translations, shown.translations);
  EXPECT_TRUE(DecodeShownAnswers(R"({"step": 1, "answers": []})")->translations.empty())
      << "of a job without, or an earlier version";
}

TEST(ShownJson, RefusesWhatItDidNotWrite) {
  for (const char* text : {"{", "{}", R"({"step": 1, "answers": [[1]]})", R"({"step": "x"})",
                           R"({"step": 1, "answers": [], "translations": [[0, "a", "b"]]})"}) {
    EXPECT_TRUE(absl::IsDataLoss(DecodeShownAnswers(text).status())) << text;
  }
  for (const char* text : {"{", "{}", "[1]", R"(["?"])"}) {
    EXPECT_TRUE(absl::IsDataLoss(DecodeShownPictures(text).status())) << text;
  }
}

}  // namespace
}  // namespace stagecoach
