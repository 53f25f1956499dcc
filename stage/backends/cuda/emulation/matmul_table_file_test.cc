#include "stage/backends/cuda/matmul/matmul_table_file.h"

#include <filesystem>

#include "base/testing/temporary_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace stagecoach::cuda {
namespace {

using testing::HasSubstr;

class MatmulTableFile : public testing::Test {
 protected:
  std::string Path(const char* name) const { return folder_.File(name); }
  void Write(const char* name, const std::string& text) { folder_.Write(name, text); }
  static MatmulTable Table(int32_t id) {
    MatmulTable table(
        {.card = "a card", .compute_capability = 90, .library_version = 7, .workspace_bytes = 9});
    table.Add({.rows = 1, .in = 2, .out = 3}, {.algorithm = {.id = id}});
    return table;
  }
  void ExpectRefused(const char* name, const std::string& text) {
    const absl::Status status = LoadMatmulTable(Path(name)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(Path(name) + ": " + text));
  }

  TemporaryFolder folder_;
};

TEST_F(MatmulTableFile, IsReadAsItWasWrittenAndReplacesAnEarlierOne) {
  for (const int32_t id : {1, 2}) {
    ASSERT_TRUE(CheckMatmulTableFile(Path("table")).ok());
    ASSERT_TRUE(SaveMatmulTable(Table(id), Path("table")).ok());
    const auto read = LoadMatmulTable(Path("table"));
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(*read, Table(id));
  }
  EXPECT_FALSE(std::filesystem::exists(Path("table.new")));
}

TEST_F(MatmulTableFile, ThatIsNoTableIsRefusedByItsName) {
  Write("empty", "");
  Write("large", std::string(kMostMatmulTableBytes + 1, ' '));
  Write("largest", std::string(kMostMatmulTableBytes, ' '));
  ExpectRefused("missing", "No such file or directory");
  ExpectRefused("", "is no file");
  ExpectRefused("empty", "the table: no JSON");
  ExpectRefused("large", "is larger than 1048576 bytes");
  ExpectRefused("largest", "the table: no JSON");
}

TEST_F(MatmulTableFile, WhereNothingCanBeWrittenIsSaidBeforeAndAfter) {
  const absl::Status before = CheckMatmulTableFile(Path("nowhere/table"));
  EXPECT_EQ(before.code(), absl::StatusCode::kNotFound) << before;
  EXPECT_THAT(std::string(before.message()), HasSubstr("nowhere/table.new: writing"));
  EXPECT_EQ(SaveMatmulTable(Table(1), Path("nowhere/table")).code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace stagecoach::cuda
