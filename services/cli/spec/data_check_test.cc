#include "services/cli/spec/data_check.h"

#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "network/zoo/gpt.h"

namespace stagecoach {
namespace {

using testing::AllOf;
using testing::HasSubstr;

JobSpec JobOn(const std::string& content) {
  const auto* const info = testing::UnitTest::GetInstance()->current_test_info();
  JobSpec spec;
  spec.model = GptSpec{.context = 16};
  spec.data.text.path = testing::TempDir() + "/" + info->name();
  std::ofstream(spec.data.text.path, std::ios::binary) << content;
  return spec;
}

// Seen: a gzip file was submitted and trained on as if it were text.
TEST(CheckData, ACompressedFileIsRefusedBeforeItIsSubmitted) {
  JobSpec spec = JobOn("\x1f\x8b\x08 and nineteen bytes or more");
  const absl::Status status = CheckData(spec);
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(spec.data.text.path));
  spec.data.text.bytes = true;
  EXPECT_TRUE(CheckData(spec).ok());
}

// Seen: `validate` and `submit` took an empty file; the job failed when its stages had loaded.
TEST(CheckData, ATextWithoutASequenceIsRefusedWithItsSizeAndWhatIsNeeded) {
  for (const int bytes : {0, 18}) {
    const absl::Status status = CheckData(JobOn(std::string(bytes, 'x')));
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(
        std::string(status.message()),
        AllOf(HasSubstr(absl::StrCat("of ", bytes, " bytes")), HasSubstr("at least 19 bytes")));
  }
  JobSpec spec = JobOn(std::string(19, 'x'));
  EXPECT_TRUE(CheckData(spec).ok());
  spec.evaluation.every_steps = 1;
  EXPECT_THAT(std::string(CheckData(spec).message()), HasSubstr("at least 161 bytes"));
}

TEST(CheckData, ATextPassesAndSoDoesWhatOnlyTheStagesMaySee) {
  EXPECT_TRUE(CheckData(JobOn("a text that will do\n")).ok());
  JobSpec elsewhere;
  elsewhere.data.text.path = "/nowhere/text";
  EXPECT_TRUE(CheckData(elsewhere).ok());
  elsewhere.data.text.path = "/";
  EXPECT_TRUE(CheckData(elsewhere).ok());
}

}  // namespace
}  // namespace stagecoach
