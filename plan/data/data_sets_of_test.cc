#include "plan/data/data_sets_of.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/data/image_folder.h"
#include "plan/data/text.h"

namespace stagecoach {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(DataSetsOf, EachOnceOfTheDataAndTheWeights) {
  JobSpec spec;
  EXPECT_THAT(DataSetsOf(spec), IsEmpty()) << "a job without data";
  spec.data = TextData{.path = "store:/data/texts/a.txt", .test = "/on/the/stages.txt"};
  EXPECT_THAT(DataSetsOf(spec), ElementsAre("texts"));
  spec.initialize.from = "store:/data/bert";
  EXPECT_THAT(DataSetsOf(spec), ElementsAre("bert", "texts"));
  spec.initialize.from = "store:/data/texts/weights";
  EXPECT_THAT(DataSetsOf(spec), ElementsAre("texts"));
  spec.initialize.from = "store:/data/../x";
  EXPECT_THAT(DataSetsOf(spec), ElementsAre("texts")) << "no path in a set";
}

// Symptom: `generate JOB --local-stages 2` was refused, as that cluster has no data set of the job.
TEST(DataSetsOf, AJobThatWritesReadsItsTokenizerAlone) {
  JobSpec spec;
  spec.data =
      TextData{.path = "store:/data/texts/a.txt", .tokenizer = "store:/data/pieces/all.model"};
  EXPECT_THAT(DataSetsOf(spec), ElementsAre("pieces", "texts"));
  spec.write.emplace();
  EXPECT_THAT(DataSetsOf(spec), ElementsAre("pieces"));
}

TEST(DataSetsOf, TellsFilesFromFolders) {
  JobSpec spec;
  spec.data = ImageFolderData{.train = "store:/data/cats/train"};
  const std::vector<ClusterPath> paths = PathsInDataSets(spec);
  ASSERT_EQ(paths.size(), 1u);
  EXPECT_EQ(paths[0].field, "data.image_folder.train");
  EXPECT_EQ(paths[0].path, "store:/data/cats/train");
  EXPECT_TRUE(paths[0].folder);
  EXPECT_FALSE(paths[0].file);
}

TEST(DataSetsOf, PathsInBucketsAreNoDataSetsYet) {
  JobSpec spec;
  spec.data = TextData{.path = "s3://corpora/a.txt", .tokenizer = "store:/data/pieces/all.model"};
  spec.initialize.from = "s3://weights/resnet";
  EXPECT_THAT(DataSetsOf(spec), ElementsAre("pieces"));
  const std::vector<ClusterPath> paths = PathsInBuckets(spec);
  ASSERT_EQ(paths.size(), 2u);
  EXPECT_EQ(paths[0].field, "data.text.path");
  EXPECT_EQ(paths[0].path, "s3://corpora/a.txt");
  EXPECT_EQ(paths[1].field, "initialize.from");
  EXPECT_TRUE(paths[1].file && paths[1].folder);
}

}  // namespace
}  // namespace stagecoach
