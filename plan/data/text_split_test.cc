#include "plan/data/text_split.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plan/data/text.h"

namespace stagecoach {
namespace {

using testing::AllOf;
using testing::HasSubstr;

JobSpec SpecThatEvaluates(bool evaluates) {
  JobSpec spec;
  spec.data = TextData{.path = "/texts/short"};
  spec.evaluation.every_steps = evaluates ? 1 : 0;
  return spec;
}

TEST(TextSplit, EveryByteIsOfOnePartAndASequenceHasItsTarget) {
  for (const int64_t bytes : {0, 1, 9, 10, 11, 99, 1000, 12345}) {
    const TextSplit split = SplitText(bytes, 8);
    EXPECT_EQ(split.train_bytes, bytes * 9 / 10);
    for (const auto& [part, sequences] :
         {std::pair(split.train_bytes, split.train_sequences),
          std::pair(bytes - split.train_bytes, split.evaluation_sequences)}) {
      EXPECT_LE(sequences * 8 + (sequences > 0 ? 1 : 0), part) << bytes;
      EXPECT_GT((sequences + 1) * 8 + 1, part) << bytes;
    }
  }
}

// The size that a refusal asks for is enough, and one byte less is not.
TEST(TextSplit, ARefusalNamesTheLeastSizeThatDoes) {
  for (const bool evaluates : {false, true}) {
    const JobSpec spec = SpecThatEvaluates(evaluates);
    for (const int64_t context : {1, 2, 7, 8, 9, 10, 64, 1023}) {
      int64_t least = 0;
      while (!CheckTextLength(spec, context, least).ok()) ++least;
      for (const int64_t bytes : {int64_t{0}, least / 2, least - 1}) {
        const absl::Status refused = CheckTextLength(spec, context, bytes);
        EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
        EXPECT_THAT(std::string(refused.message()),
                    AllOf(HasSubstr(absl::StrCat("\"/texts/short\" of ", bytes, " bytes")),
                          HasSubstr(absl::StrCat("at least ", least, " bytes"))));
      }
    }
  }
}

TEST(TextSplit, WhoEvaluatesByEpochsNeedsAHeldOutSequenceToo) {
  JobSpec spec = SpecThatEvaluates(false);
  EXPECT_TRUE(CheckTextLength(spec, 10, 60).ok());
  spec.evaluation.every_epochs = 0.5;
  EXPECT_THAT(std::string(CheckTextLength(spec, 10, 60).message()),
              AllOf(HasSubstr("the 10 % held out hold no sequence"),
                    HasSubstr("or no evaluation (evaluation.every_steps, ")));
}

TEST(TextSplit, AnEmptyFileIsCalledSo) {
  const absl::Status refused = CheckTextLength(SpecThatEvaluates(false), 16, 0);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("is empty"));
}

}  // namespace
}  // namespace stagecoach
