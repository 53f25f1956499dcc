#include "coordinator/loop/hidden_places.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "coordinator/testing/simulated_cluster.h"

namespace stagecoach {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

const JobCaller kUserAnn{"user/ann", true};

TEST(HiddenPlacesTest, NamesStandInThePlaceOfAddressesAndFolders) {
  HiddenPlaces places;
  places.AddFolder("/srv/state", "STATE");
  places.AddFolder("/srv/state/checkpoints", "CHECKPOINTS");
  places.AddAddress("10.0.0.5:810", "stage-0");
  places.AddAddress("10.0.0.5:8101", "stage-1");
  places.AddAddress("host-2:8101", "stage-2");
  const auto hidden = [&places](const char* text) { return places.Hide(text); };
  EXPECT_EQ(hidden("open /srv/state/checkpoints/a/MANIFEST.json: not a regular file"),
            "open CHECKPOINTS/a/MANIFEST.json: not a regular file");
  EXPECT_EQ(hidden("create /srv/state/exports/a: no room; /srv/state."),
            "create STATE/exports/a: no room; /srv/state.")
      << "a name may end in a dot";
  EXPECT_EQ(hidden("list /srv/state: busy"), "list STATE: busy");
  EXPECT_EQ(hidden("/srv/stately/x"), "/srv/stately/x");
  EXPECT_EQ(hidden("link 0-1, peer 10.0.0.5:8101: broken"), "link 0-1, peer stage-1: broken");
  EXPECT_EQ(hidden("ipv4:10.0.0.5:8101: Connection refused."), "ipv4:stage-1: Connection refused.");
  EXPECT_EQ(hidden("host-2:8101, host-2:81010, 10.0.0.5:810"), "stage-2, host-2:81010, stage-0");
  EXPECT_EQ(hidden("ipv4:192.168.1.7:50051: timeout"), "ipv4:an address: timeout");
  EXPECT_EQ(hidden("cuda:0 at 12:30, version 1.2.3.4 of /data/a.txt, 3:1"),
            "cuda:0 at 12:30, version 1.2.3.4 of /data/a.txt, 3:1");
  EXPECT_EQ(hidden(""), "");
}

// Symptom: users read in a job's history at which addresses stages listen, and where checkpoints lie.
TEST(HiddenPlacesTest, AJobsHistoryNamesStagesAndTheLogTheirAddresses) {
  SimulatedCluster cluster(2);
  ASSERT_TRUE(cluster.Submit("a", SmallJob(2), kUserAnn).ok());
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.View("a").step == 2; }));
  cluster.run_fault = [](int stage, const RunCommand&) {
    return stage == 0 ? absl::UnavailableError("link 0-1, peer host-1:8101: broken pipe")
                      : absl::OkStatus();
  };
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.View("a").recoveries == 1; }));
  EXPECT_THAT(cluster.View("a").message, HasSubstr("peer stage-1: broken pipe"));
  cluster.run_fault = nullptr;
  ASSERT_TRUE(cluster.RunToEnd("a"));
  std::string history;
  for (const JobRecord& record : cluster.Records("a")) history += record.message + "\n";
  EXPECT_THAT(history, HasSubstr("peer stage-1: broken pipe"));
  EXPECT_THAT(history, Not(HasSubstr("host-1:8101")));
  EXPECT_THAT(cluster.logged_details, Contains(HasSubstr("peer host-1:8101: broken pipe")));
}

// Symptom: who runs a cluster of its own was sent to a folder that is called CHECKPOINTS.
TEST(HiddenPlacesTest, AJobWithoutAUserTellsWhatItsOperatorNeeds) {
  SimulatedCluster cluster(2);
  ASSERT_TRUE(cluster.Submit("a", SmallJob(2)).ok());
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.View("a").step == 2; }));
  cluster.run_fault = [](int stage, const RunCommand&) {
    return stage == 0 ? absl::UnavailableError("link 0-1, peer host-1:8101: broken pipe")
                      : absl::OkStatus();
  };
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.View("a").recoveries == 1; }));
  EXPECT_THAT(cluster.View("a").message, HasSubstr("peer host-1:8101: broken pipe"));
  EXPECT_TRUE(cluster.logged_details.empty());
}

// What the records hid the job's message had, for as long as its steps were done again.
TEST(HiddenPlacesTest, AJobThatTriesItsLastCheckpointAgainNamesNoFolder) {
  SimulatedCluster cluster(2);
  ASSERT_TRUE(cluster.Submit("a", SmallJob(2), kUserAnn).ok());
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.View("a").last_checkpoint_step == 6; }));
  cluster.files().SetCapacity(100);
  std::string again;
  ASSERT_TRUE(cluster.RunUntil([&] {
    again = cluster.View("a").message;
    return absl::StrContains(again, "again, as the last checkpoint");
  })) << again;
  EXPECT_THAT(again, HasSubstr("CHECKPOINTS/a has"));
  EXPECT_THAT(again, Not(HasSubstr("/checkpoints")));
  cluster.files().SetCapacity(1 << 20);
  ASSERT_TRUE(cluster.RunToEnd("a"));
  EXPECT_EQ(cluster.View("a").phase, JobPhase::kSucceeded) << cluster.View("a").message;
}

}  // namespace
}  // namespace stagecoach
