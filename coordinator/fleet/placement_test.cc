#include "coordinator/fleet/placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace stagecoach {
namespace {

Fleet FleetOf(int stages) {
  Fleet fleet(1.5);
  std::vector<LostStage> lost;
  for (int i = 0; i < stages; ++i) {
    StageRegistration stage;
    stage.name = absl::StrCat("s", i);
    stage.incarnation = "1";
    stage.address = "host";
    EXPECT_TRUE(fleet.Register(stage, {}, &lost).ok());
  }
  return fleet;
}

WaitingJob Job(const std::string& id, int wanted) {
  WaitingJob job;
  job.id = id;
  job.wanted = wanted;
  job.useful = 10;
  return job;
}

std::string Text(const Placement& placement) {
  std::string text;
  for (const StageOffer& offer : placement.offers) {
    absl::StrAppend(&text, offer.job, ":");
    for (const StageRegistration& stage : offer.stages) absl::StrAppend(&text, " ", stage.name);
    absl::StrAppend(&text, "; ");
  }
  for (const Shortage& s : placement.shortages) {
    absl::StrAppend(&text, s.job, " lacks ", s.ready, "/", s.needed, "; ");
  }
  return text;
}

std::string Place(const Fleet& fleet, const std::vector<WaitingJob>& jobs) {
  return Text(PlaceJobs(fleet, jobs));
}

TEST(PlacementTest, ServesJobsInOrderOnDisjointStages) {
  EXPECT_EQ(Place(FleetOf(4), {Job("a", 2), Job("b", 1), Job("c", 1)}), "a: s0 s1; b: s2; c: s3; ");
}

TEST(PlacementTest, KeepsStagesForAJobThatWillBeServedOnceOthersEnd) {
  Fleet fleet = FleetOf(4);
  fleet.Hold("running", {"s0", "s1"});
  EXPECT_EQ(Place(fleet, {Job("a", 3), Job("b", 1)}), "a lacks 2/3; b lacks 0/1; ");
}

TEST(PlacementTest, LetsNobodyWaitForAJobThatWantsMoreStagesThanThereAre) {
  EXPECT_EQ(Place(FleetOf(2), {Job("a", 3), Job("b", 1)}), "b: s0; a lacks 2/3; ");
}

TEST(PlacementTest, ServesRecoveringJobsFirstAndKeepsTheirStages) {
  Fleet fleet = FleetOf(3);
  fleet.Hold("b", {"s2"});
  WaitingJob recovering = Job("b", 2);
  recovering.recovering = true;
  EXPECT_EQ(Place(fleet, {Job("a", 1), recovering}), "b: s0 s1; a lacks 0/1; ");
  recovering.wanted = 4;  // more than there are: it keeps what there is until its time is up
  EXPECT_EQ(Place(fleet, {Job("a", 1), recovering}), "b lacks 3/4; a lacks 0/1; ");
  recovering.accepts_fewer = true;
  EXPECT_EQ(Place(fleet, {Job("a", 1), recovering}), "b: s0 s1 s2; a lacks 0/1; ");
}

// The stage that had come for b went to a while b saved, and b failed for want of it.
TEST(PlacementTest, KeepsFreeStagesForARecoveringJobThatSavesMeanwhile) {
  Fleet fleet = FleetOf(3);
  fleet.Hold("b", {"s2"});
  WaitingJob saving = Job("b", 3);
  saving.recovering = saving.saving = true;
  EXPECT_EQ(Place(fleet, {Job("a", 1), saving}), "a lacks 0/1; ");
  saving.saving = false;
  EXPECT_EQ(Place(fleet, {Job("a", 1), saving}), "b: s0 s1 s2; a lacks 0/1; ");
}

TEST(PlacementTest, GivesAnAutoJobEveryFreeStageButNotMoreThanLayers) {
  EXPECT_EQ(Place(FleetOf(3), {Job("a", 0)}), "a: s0 s1 s2; ");
  WaitingJob shallow = Job("a", 0);
  shallow.useful = 2;
  EXPECT_EQ(Place(FleetOf(3), {shallow}), "a: s0 s1; ");
  EXPECT_EQ(Place(FleetOf(0), {Job("a", 0)}), "a lacks 0/1; ");
}

// An automatic job took the one stage that had come up first, and trained on it alone.
TEST(PlacementTest, AnAutoJobWaitsForAsManyStagesAsItAskedFor) {
  WaitingJob job = Job("a", 0);
  job.least = 3;
  EXPECT_EQ(Place(FleetOf(2), {job}), "a lacks 2/3; ");
  EXPECT_EQ(Place(FleetOf(2), {job, Job("b", 1)}), "b: s0; a lacks 2/3; ");
  EXPECT_EQ(Place(FleetOf(3), {job}), "a: s0 s1 s2; ");
  Fleet busy = FleetOf(4);
  busy.Hold("running", {"s0", "s1"});
  EXPECT_EQ(Place(busy, {job, Job("b", 1)}), "a lacks 2/3; b lacks 0/1; ") << "its turn comes";
}

TEST(PlacementTest, FewerThanWantedAreNeverFewerThanTheLeast) {
  WaitingJob job = Job("a", 4);
  job.recovering = job.accepts_fewer = true;
  job.least = 2;
  EXPECT_EQ(Place(FleetOf(3), {job}), "a: s0 s1 s2; ");
  EXPECT_EQ(Place(FleetOf(1), {job}), "a lacks 1/2; ");
}

TEST(PlacementTest, TakesASuspectOnlyIfThereIsNoOther) {
  WaitingJob job = Job("a", 2);
  job.suspects = {"s0"};
  EXPECT_EQ(Place(FleetOf(3), {job}), "a: s1 s2; ");
  EXPECT_EQ(Place(FleetOf(2), {job}), "a: s1 s0; ");
}

// A spare one that came back under an earlier name must not take the place of who has a part of the
// job in memory.
TEST(PlacementTest, TakesThoseThatHoldAPartOfTheJobFirst) {
  WaitingJob job = Job("a", 3);
  job.recovering = true;
  job.holders = {"s2", "s3"};
  EXPECT_EQ(Place(FleetOf(5), {job}), "a: s0 s2 s3; ");
  job.suspects = {"s3"};
  EXPECT_EQ(Place(FleetOf(5), {job}), "a: s0 s1 s2; ");
}

// Seen by the simulator: of three stages one job that recovered held two and the one before it was
// left the third, and both failed for want of stages.
TEST(PlacementTest, TakesWhatAJobBehindHoldsWhereThatServesTheOneBefore) {
  Fleet fleet = FleetOf(3);
  fleet.Hold("b", {"s1", "s2"});
  WaitingJob first = Job("a", 3), second = Job("b", 3);
  first.recovering = second.recovering = true;
  EXPECT_EQ(Place(fleet, {first, second}), "a: s0 s1 s2; b lacks 0/3; ");
  first.wanted = 2;
  EXPECT_EQ(Place(fleet, {first, second}), "a: s0 s1; b lacks 1/3; ") << "no more than it needs";
  first.wanted = 4;
  EXPECT_EQ(Place(fleet, {first, second}), "a lacks 1/4; b lacks 2/3; ") << "it would not do";
  EXPECT_EQ(Place(fleet, {second}), "b: s0 s1 s2; ");
}

TEST(PlacementTest, NeverTakesAProcessThatIsUnfitForTheJob) {
  WaitingJob job = Job("a", 2);
  job.unfit = {{"s0", "1"}, {"s2", "an earlier one"}};
  EXPECT_EQ(Place(FleetOf(3), {job}), "a: s1 s2; ");
  EXPECT_EQ(Place(FleetOf(2), {job, Job("b", 1)}), "b: s0; a lacks 1/2; ") << "others may";
}

}  // namespace
}  // namespace stagecoach
