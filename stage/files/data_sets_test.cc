#include "stage/files/data_sets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/status_is.h"
#include "base/testing/temporary_folder.h"
#include "stage/files/data_roots.h"
#include "stage/files/folder_data_sets_testing.h"

namespace stagecoach {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

class DataSetsTest : public ::testing::Test {
 protected:
  DataSetsTest() {
    folder_.Write("weights/a.safetensors", "0123456789");
    folder_.Write("a.txt", "text");
  }
  static std::string In(const std::string& name) { return FolderDataSets::Path(name); }

  const TemporaryFolder folder_;
  FolderDataSets sets_{folder_.path()};
  // Without a root: the coordinator's grant is what opens a set.
  DataRoots roots_{{.data_sets = &sets_}};
};

TEST_F(DataSetsTest, AFileOfASetIsARangeThatIsWaitedFor) {
  const auto opened = roots_.OpenFile(In("a.txt"));
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(opened->real, In("a.txt"));
  EXPECT_EQ(opened->begin, FolderDataSets::kBegin);
  EXPECT_EQ(opened->bytes, 4);
  EXPECT_EQ(opened->sha256, Sha256Hex("text"));
  ASSERT_NE(opened->ranges, nullptr);
  EXPECT_TRUE(absl::IsPermissionDenied(roots_.OpenFile(folder_.File("a.txt")).status()));
}

TEST_F(DataSetsTest, WeightsAskForTheirOwnBytesAlone) {
  const auto file = roots_.Open(In("weights/a.safetensors"));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ((*file)->size(), 10);
  std::string some(3, '\0');
  const auto bytes = std::as_writable_bytes(std::span(some));
  ASSERT_TRUE((*file)->Read(4, bytes).ok());
  EXPECT_EQ(some, "456");
  EXPECT_THAT(sets_.asked(), ElementsAre(Pair("weights/a.safetensors", 3)));
  EXPECT_THAT((*file)->Read(8, bytes), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("ends")));
  sets_.Fail(absl::UnavailableError("nothing came"));
  EXPECT_THAT((*file)->Read(0, bytes),
              StatusIs(absl::StatusCode::kUnavailable,
                       AllOf(HasSubstr("weights/a.safetensors: "), HasSubstr("nothing came"))));
}

TEST_F(DataSetsTest, FoldersOfASetAreListed) {
  const auto root = roots_.ListFolder(In(""));
  ASSERT_TRUE(root.ok()) << root.status();
  EXPECT_EQ(root->real, In(""));
  ASSERT_EQ(root->entries.size(), 2u);
  EXPECT_EQ(root->entries[0].name, "a.txt");
  EXPECT_EQ(root->entries[0].bytes, 4);
  EXPECT_EQ(root->entries[1].kind, DataRoots::Entry::Kind::kFolder);
  EXPECT_TRUE(absl::IsNotFound(roots_.ListFolder(In("nothing")).status()));
}

TEST_F(DataSetsTest, LooksAtWhatIsThere) {
  EXPECT_TRUE(roots_.Look(In("a.txt")).ok());
  EXPECT_TRUE(roots_.Look(In("weights")).ok());
  EXPECT_TRUE(absl::IsNotFound(roots_.Look(In("nothing"))));
}

TEST_F(DataSetsTest, APathThatLeavesItsSetIsRefused) {
  folder_.Write("beside", "secret");
  for (const std::string& path : {In("../beside"), In("weights/../../beside"), In("/etc/passwd"),
                                  std::string(kDataSetPrefix) + "../x"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(roots_.OpenFile(path).status())) << path;
    EXPECT_TRUE(absl::IsInvalidArgument(roots_.ListFolder(path).status())) << path;
    EXPECT_TRUE(absl::IsInvalidArgument(roots_.Look(path))) << path;
  }
}

TEST_F(DataSetsTest, APlaceWithoutTheClustersSetsSaysSo) {
  const std::unique_ptr<DataRoots> here = DataRoots::Everything();
  for (const absl::Status& refused :
       {here->OpenFile(In("a.txt")).status(), here->ListFolder(In("")).status(),
        here->Open(In("a.txt")).status(), here->Look(In("a.txt"))}) {
    EXPECT_THAT(refused, StatusIs(absl::StatusCode::kFailedPrecondition,
                                  HasSubstr("data sets of the cluster cannot be read here")));
  }
}

}  // namespace
}  // namespace stagecoach
