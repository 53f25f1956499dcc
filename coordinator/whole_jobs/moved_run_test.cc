#include "coordinator/journal/moved_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "checkpoint/testing/fault_file_system.h"
#include "coordinator/whole_jobs/test_cluster_testing.h"
#include "plan/data/text.h"

namespace stagecoach {
namespace {

TEST(MovedRunTest, WhatMovedWithTheStateFolderIsLookedForWhereThatIsNow) {
  FaultFileSystem files;
  for (const char* folder : {"/b/project/data", "/c/runs", "/else"}) {
    ASSERT_TRUE(files.MakeFolders(folder).ok());
  }
  const MovedRun project("/a/project/runs/1", "/b/project/runs/1", &files);
  EXPECT_EQ(project.Path("/a/project/data"), "/b/project/data");
  EXPECT_EQ(project.Path("/a/project/gone"), "/a/project/gone") << "nothing is there";
  EXPECT_EQ(project.Path("/a/projects/data"), "/a/projects/data") << "it lay beside it";
  EXPECT_EQ(project.Path("/else"), "/else");
  const MovedRun run("/a/project/runs/1", "/c/runs/1", &files);
  EXPECT_EQ(run.Path("/a/project/data"), "/a/project/data") << "the data stayed";
  const MovedRun stayed("/b/project/runs/1", "/b/project/runs/1", &files);
  EXPECT_EQ(stayed.Path("/b/project/data"), "/b/project/data");
  const MovedRun relative("state", "/b/project/state", &files);
  EXPECT_EQ(relative.Path("/a/project/data"), "/a/project/data");
}

// Symptom: of a project that was renamed no job went on: "data.text.path: no such file", or "has
// another spec".
TEST(MovedRunTest, AnUnfinishedJobGoesOnWithTheDataThatMovedAlong) {
  TestCluster cluster(2);
  JobSpec job = SmallJob(2);
  job.data = TextData{.path = "/old/project/input.txt"};
  cluster.set_state_folder("/old/project/runs/1");
  cluster.RestartCoordinator();
  cluster.Start(job).UntilStep(4);
  ASSERT_TRUE(cluster.files().MakeFolders("/new/project/input.txt").ok());  // something
  cluster.set_state_folder("/new/project/runs/1");
  cluster.RestartCoordinator();
  EXPECT_EQ(cluster.View(kJob).spec->data, DataSpec(TextData{.path = "/new/project/input.txt"}));
  cluster.Digest();
  EXPECT_EQ(cluster.View(kJob).weights_folder, "/new/project/runs/1/exports/small-1");
}

}  // namespace
}  // namespace stagecoach
