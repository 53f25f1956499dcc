#include "coordinator/journal/moved_run.h"

#include <gtest/gtest.h>

#include <string>

#include "checkpoint/testing/fault_file_system.h"
#include "plan/data/text.h"

namespace stagecoach {
namespace {

TEST(MovedRun, FilesMoveAndDataSetsOfTheCoordinatorStay) {
  FaultFileSystem files;
  ASSERT_TRUE(files.MakeFolders("/new/data").ok());
  ASSERT_TRUE(files.Create("/new/data/a.txt").ok());
  const MovedRun moved("/old/runs/1", "/new/runs/1", &files);
  const std::string in_set = "store:/data/" + std::string(64, 'a') + "/old/a.txt";
  JobSpec spec;
  spec.data = TextData{.path = "/old/data/a.txt", .test = in_set};
  spec.initialize.from = in_set;
  EXPECT_TRUE(moved.Move(&spec));
  EXPECT_EQ(std::get<std::string>(*spec.data.attributes.Find("path")), "/new/data/a.txt");
  EXPECT_EQ(std::get<std::string>(*spec.data.attributes.Find("test")), in_set);
  EXPECT_EQ(spec.initialize.from, in_set);

  spec.data = TextData{.path = in_set};
  EXPECT_FALSE(moved.Move(&spec));
}

}  // namespace
}  // namespace stagecoach
