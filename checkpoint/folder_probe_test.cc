// Two machines, each with a file system in memory: what each sees of the other's folder.
#include "checkpoint/folder_probe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "checkpoint/store/store.h"
#include "checkpoint/testing/fault_file_system.h"

namespace stagecoach {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class FolderProbeTest : public ::testing::Test {
 protected:
  FolderProbe Begin() {
    const absl::StatusOr<std::string> folder = store_.Begin("job", 1, 0, 0);
    EXPECT_TRUE(folder.ok()) << folder.status();
    const absl::StatusOr<FolderProbe> probe = WriteFolderProbe(files_, *folder);
    EXPECT_TRUE(probe.ok()) << probe.status();
    return *probe;
  }

  FaultFileSystem files_;  // the coordinator's
  FaultFileSystem others_;
  CheckpointStore store_{&files_, "/root"};
};

TEST_F(FolderProbeTest, OneFolderIsSeenFromBothSides) {
  const FolderProbe probe = Begin();
  for (const int stage : {0, 1}) EXPECT_TRUE(AnswerFolderProbe(files_, probe.folder, stage).ok());
  EXPECT_TRUE(AnswerFolderProbe(files_, probe.folder, 1).ok()) << "the command came twice";
  for (const int stage : {0, 1}) EXPECT_TRUE(CheckFolderAnswer(files_, probe, stage).ok());
  EXPECT_TRUE(absl::IsNotFound(CheckFolderAnswer(files_, probe, 2)));
  store_.Abandon(probe.folder);
  EXPECT_THAT(*files_.List("/root/job"), IsEmpty());
}

// Training went on for days while every checkpoint failed: the stages had a folder of that name
// too.
TEST_F(FolderProbeTest, AFolderOfTheSameNameOnAnotherDiskIsNotTheSame) {
  const FolderProbe probe = Begin();
  ASSERT_TRUE(others_.MakeFolders("/root/job").ok());
  const absl::Status status = AnswerFolderProbe(others_, probe.folder, 0);
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr(probe.folder + "/probe"));
  EXPECT_THAT(*others_.List("/root/job"), IsEmpty()) << "nothing is made there";
}

TEST_F(FolderProbeTest, ACopyOfTheFolderIsNoticedByTheCoordinator) {
  const FolderProbe probe = Begin();
  ASSERT_TRUE(others_.MakeFolders(probe.folder).ok());
  ASSERT_TRUE(others_.Create(probe.folder + "/probe").ok());
  others_.SetContents(probe.folder + "/probe", probe.secret);
  EXPECT_TRUE(AnswerFolderProbe(others_, probe.folder, 0).ok());
  EXPECT_TRUE(absl::IsNotFound(CheckFolderAnswer(files_, probe, 0)));
}

TEST_F(FolderProbeTest, AnAnswerToAnotherQuestionIsNone) {
  const FolderProbe probe = Begin(), earlier = Begin();
  ASSERT_TRUE(AnswerFolderProbe(files_, earlier.folder, 0).ok());
  ASSERT_TRUE(AnswerFolderProbe(files_, probe.folder, 0).ok());
  files_.SetContents(probe.folder + "/answer-0", files_.Contents(earlier.folder + "/answer-0"));
  EXPECT_TRUE(absl::IsFailedPrecondition(CheckFolderAnswer(files_, probe, 0)));
  files_.SetContents(probe.folder + "/answer-0", std::string(1 << 20, 'x'));
  EXPECT_TRUE(absl::IsDataLoss(CheckFolderAnswer(files_, probe, 0))) << "and is not read whole";
}

TEST_F(FolderProbeTest, AStageThatMayOnlyReadIsNoticed) {
  const FolderProbe probe = Begin();
  // Open and read, then the removal of an earlier answer, then its creation.
  files_.Inject({.call = 4, .code = absl::StatusCode::kPermissionDenied});
  EXPECT_TRUE(absl::IsPermissionDenied(AnswerFolderProbe(files_, probe.folder, 0)));
}

TEST_F(FolderProbeTest, AFullDiskIsToldApart) {
  const FolderProbe probe = Begin();
  files_.SetCapacity(0);
  EXPECT_TRUE(absl::IsResourceExhausted(AnswerFolderProbe(files_, probe.folder, 0)));
}

}  // namespace
}  // namespace stagecoach
