#include "services/cli/spec/data_check.h"

#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace stagecoach {
namespace {

using testing::HasSubstr;

DataSpec Data(const std::string& content) {
  const auto* const info = testing::UnitTest::GetInstance()->current_test_info();
  DataSpec data;
  data.text.path = testing::TempDir() + "/" + info->name();
  std::ofstream(data.text.path, std::ios::binary) << content;
  return data;
}

// Seen: a gzip file was submitted and trained on as if it were text.
TEST(CheckData, ACompressedFileIsRefusedBeforeItIsSubmitted) {
  DataSpec data = Data("\x1f\x8b\x08");
  const absl::Status status = CheckData(data);
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(data.text.path));
  data.text.bytes = true;
  EXPECT_TRUE(CheckData(data).ok());
}

TEST(CheckData, ATextPassesAndSoDoesWhatOnlyTheStagesMaySee) {
  EXPECT_TRUE(CheckData(Data("a text\n")).ok());
  DataSpec elsewhere;
  elsewhere.text.path = "/nowhere/text";
  EXPECT_TRUE(CheckData(elsewhere).ok());
  elsewhere.text.path = "/";
  EXPECT_TRUE(CheckData(elsewhere).ok());
}

}  // namespace
}  // namespace stagecoach
