#include "coordinator/fleet/fleet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>

namespace stagecoach {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

StageRegistration Stage(const std::string& name, const std::string& incarnation) {
  StageRegistration registration;
  registration.name = name;
  registration.incarnation = incarnation;
  registration.address = name + ":8101";
  registration.identity = "identity of " + name;
  return registration;
}

// A process of another stage that was given the name.
StageRegistration Stranger(const std::string& name, const std::string& incarnation) {
  StageRegistration registration = Stage(name, incarnation);
  registration.address = "elsewhere:8101";
  registration.identity = "another";
  return registration;
}

Moment At(double seconds) { return {seconds, 1e9 + seconds}; }

StageHeartbeat Beat(const std::string& name, const std::string& incarnation) {
  StageHeartbeat heartbeat;
  heartbeat.name = name;
  heartbeat.incarnation = incarnation;
  heartbeat.waiting_for = "nothing";
  heartbeat.totals.uptime_seconds = 7;
  return heartbeat;
}

std::vector<std::string> Usable(const Fleet& fleet, const std::string& job) {
  std::vector<std::string> names;
  for (const StageRegistration& stage : fleet.UsableBy(job)) names.push_back(stage.name);
  return names;
}

// The story: one certificate registered 9,999 names in 7.5 s, and no new stage could register for
// an hour.
TEST(FleetTest, WhereThePlacesAreFullALostStageGivesWayToANewOne) {
  Fleet fleet(1.5);
  std::vector<LostStage> lost;
  for (int i = 0; i < Fleet::kMaxStages; ++i) {
    ASSERT_TRUE(
        fleet.Register(Stage("ghost-" + std::to_string(i), "1"), At(i == 7 ? 9 : 10), &lost).ok());
  }
  const absl::Status full = fleet.Register(Stage("a", "1"), At(10), &lost);
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted) << "all of them live";
  ASSERT_TRUE(fleet.Renew(Beat("ghost-0", "1"), At(11)).ok());
  EXPECT_EQ(fleet.Expire(11.6).size(), Fleet::kMaxStages - 1u);
  EXPECT_TRUE(fleet.Register(Stage("a", "1"), At(11.6), &lost).ok());
  std::set<std::string> known;
  for (const StageView& view : fleet.View()) known.insert(view.registration.name);
  EXPECT_EQ(known.size(), size_t{Fleet::kMaxStages});
  EXPECT_FALSE(known.contains("ghost-7")) << "it was silent for longest";
  EXPECT_TRUE(known.contains("ghost-0") && known.contains("a"));
}

TEST(FleetTest, ACertificateHasSoManyStagesAtATimeAndItsOwnLostOnesGiveWay) {
  Fleet fleet(1.5);
  std::vector<LostStage> lost;
  const auto add = [&](const std::string& name, const std::string& certificate, double seconds) {
    StageRegistration registration = Stage(name, "1");
    registration.certificate = certificate;
    return fleet.Register(registration, At(seconds), &lost);
  };
  ASSERT_TRUE(add("other", "other", 0).ok());
  ASSERT_TRUE(add("box-1", "box-1", 0).ok());
  for (int i = 0; i < Fleet::kMostOfCertificate; ++i) {
    ASSERT_TRUE(add("box-" + std::to_string(2000 + i), "box", i == 7 ? 9 : 10).ok());
  }
  const absl::Status full = add("box-9000", "box", 10);
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(full.message()),
              AllOf(HasSubstr("stage box-9000"), HasSubstr("certificate of box has 1024 stages")));
  EXPECT_FALSE(add("box-1", "box", 10).ok()) << "a name of another one's, which it takes over";
  EXPECT_TRUE(add("box-2000", "box", 10).ok()) << "it has this one";
  EXPECT_TRUE(add("none", "", 10).ok()) << "without a certificate there is no such limit";
  EXPECT_TRUE(add("other-2", "other", 10).ok());
  fleet.Expire(10.6);
  EXPECT_TRUE(add("box-9000", "box", 10.6).ok());
  std::set<std::string> known;
  for (const StageView& view : fleet.View()) known.insert(view.registration.name);
  EXPECT_FALSE(known.contains("box-2007")) << "its lost one, not the one that was lost before";
  EXPECT_TRUE(known.contains("other") && known.contains("box-9000"));
}

// Certificates "gpu" and "gpu-2000" exist: the second one's name is one of the first one's, too.
TEST(FleetTest, AStageUnderItsOwnCertificateGivesWayToNoOther) {
  Fleet fleet(1.5);
  std::vector<LostStage> lost;
  const auto add = [&](const std::string& certificate, const std::string& instance,
                       double seconds) {
    StageRegistration registration = Stage("gpu-2000", instance);
    registration.certificate = certificate;
    return fleet.Register(registration, At(seconds), &lost);
  };
  ASSERT_TRUE(add("gpu-2000", "1", 0).ok());
  fleet.Expire(5);
  const absl::Status taken = add("gpu", "2", 6);
  EXPECT_EQ(taken.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(taken.message()),
              AllOf(HasSubstr("stage gpu-2000"), HasSubstr("--name")));
  EXPECT_TRUE(add("gpu-2000", "3", 7).ok());
}

TEST(FleetTest, LosesASilentStageExactlyWhenItsLeaseEnds) {
  Fleet fleet(1.5);
  std::vector<LostStage> lost;
  ASSERT_TRUE(fleet.Register(Stage("a", "1"), At(10), &lost).ok());
  fleet.Hold("job", {"a"});
  ASSERT_TRUE(fleet.Renew(Beat("a", "1"), At(11)).ok());
  EXPECT_LE(fleet.NextExpirySeconds(), 12.5);
  EXPECT_THAT(fleet.Expire(12.4), IsEmpty());
  EXPECT_DOUBLE_EQ(fleet.NextExpirySeconds(), 12.5) << "exact once it has looked";
  const std::vector<LostStage> expired = fleet.Expire(12.5);
  ASSERT_EQ(expired.size(), 1u);
  EXPECT_EQ(expired[0].job, "job");
  EXPECT_THAT(expired[0].reason, HasSubstr("stage a was silent for 1.5 s"));
  EXPECT_THAT(fleet.Expire(13), IsEmpty()) << "lost once";
  EXPECT_TRUE(absl::IsNotFound(fleet.Renew(Beat("a", "1"), At(13)).status()))
      << "an ended lease does not come back by itself";
  EXPECT_TRUE(std::isinf(fleet.NextExpirySeconds()));
  EXPECT_EQ(fleet.alive(), 0);
  EXPECT_EQ(fleet.View()[0].state, StageState::kLost);
  EXPECT_EQ(fleet.View()[0].totals.uptime_seconds, 7) << "what it last told stays on show";
  ASSERT_TRUE(fleet.Register(Stage("a", "1"), At(14), &lost).ok());
  EXPECT_THAT(lost, IsEmpty());
  EXPECT_THAT(Usable(fleet, "any"), ElementsAre("a"));
}

TEST(FleetTest, ReplacesAnOlderIncarnationWhichIsThenLostToItsJob) {
  Fleet fleet(1.5);
  std::vector<LostStage> lost;
  ASSERT_TRUE(fleet.Register(Stage("a", "1"), At(0), &lost).ok());
  fleet.Hold("job", {"a"});
  ASSERT_TRUE(fleet.Register(Stage("a", "2"), At(1), &lost).ok());
  ASSERT_EQ(lost.size(), 1u);
  EXPECT_EQ(lost[0].incarnation, "1");
  EXPECT_EQ(lost[0].job, "job");
  EXPECT_TRUE(absl::IsNotFound(fleet.Renew(Beat("a", "1"), At(1.1)).status()));
  EXPECT_THAT(Usable(fleet, "other"), ElementsAre("a")) << "the new process works for nobody";
}

// A stage on a second machine was given the name of one at work; both took it from each other in
// turn, each time the job recovered, and after 27 recoveries it had failed.
TEST(FleetTest, ASecondProcessWithANameInUseIsRefusedAndTheJobKeepsItsStage) {
  Fleet fleet(1.5);
  std::vector<LostStage> lost;
  ASSERT_TRUE(fleet.Register(Stage("a", "1"), At(0), &lost).ok());
  fleet.Hold("job", {"a"});
  const absl::Status refused = fleet.Register(Stranger("a", "2"), At(1), &lost);
  EXPECT_EQ(refused.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(refused.message()),
              AllOf(HasSubstr("a:8101"), HasSubstr("elsewhere:8101"), HasSubstr("--name")));
  EXPECT_EQ(fleet.Register(Stranger("a", "2"), At(1.1), &lost), refused)
      << "the same words, so that they are logged once";
  EXPECT_THAT(lost, IsEmpty());
  EXPECT_TRUE(fleet.Renew(Beat("a", "1"), At(1.4)).ok());
  EXPECT_EQ(fleet.View()[0].job, "job");
  EXPECT_FALSE(fleet.Register(Stranger("a", "2"), At(2.89), &lost).ok());
  ASSERT_TRUE(fleet.Register(Stranger("a", "2"), At(2.9), &lost).ok()) << "the lease has ended";
  ASSERT_EQ(lost.size(), 1u) << "which nobody had noticed yet";
  EXPECT_EQ(lost[0].job, "job");
}

TEST(FleetTest, WithoutAnIdentityEvenARestartedProcessWaitsForTheLease) {
  Fleet fleet(1.5);
  std::vector<LostStage> lost;
  StageRegistration first = Stage("a", "1"), second = Stage("a", "2");
  first.identity.clear();
  second.identity.clear();
  ASSERT_TRUE(fleet.Register(first, At(0), &lost).ok());
  EXPECT_EQ(fleet.Register(second, At(1), &lost).code(), absl::StatusCode::kAlreadyExists);
  EXPECT_TRUE(fleet.Register(second, At(1.5), &lost).ok());
}

// A machine was cloned with the state of its stage: both copies live and have one identity.
TEST(FleetTest, AProcessThatWasReplacedDoesNotTakeTheNameBackFromALivingSuccessor) {
  Fleet fleet(1.5);
  std::vector<LostStage> lost;
  StageRegistration copy = Stage("a", "2");
  copy.address = "clone:8101";
  ASSERT_TRUE(fleet.Register(Stage("a", "1"), At(0), &lost).ok());
  ASSERT_TRUE(fleet.Register(copy, At(1), &lost).ok()) << "looks like its restart";
  lost.clear();
  const absl::Status refused = fleet.Register(Stage("a", "1"), At(1.1), &lost);
  EXPECT_EQ(refused.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(refused.message()),
              AllOf(HasSubstr("clone:8101"), HasSubstr("a:8101"), HasSubstr("was copied")));
  EXPECT_THAT(lost, IsEmpty());
  fleet.Expire(3);
  ASSERT_TRUE(fleet.Register(Stage("a", "1"), At(3), &lost).ok()) << "the copy is gone";
  EXPECT_FALSE(fleet.Register(copy, At(3.1), &lost).ok()) << "and may not come back either";
  EXPECT_TRUE(fleet.Register(Stage("a", "3"), At(3.2), &lost).ok()) << "a restart still may";
}

TEST(FleetTest, TakesARepeatedRegistrationForARenewal) {
  Fleet fleet(1.5);
  std::vector<LostStage> lost;
  ASSERT_TRUE(fleet.Register(Stage("a", "1"), At(0), &lost).ok());
  fleet.Hold("job", {"a"});
  ASSERT_TRUE(fleet.Register(Stage("a", "1"), At(1), &lost).ok());
  EXPECT_THAT(lost, IsEmpty());
  EXPECT_EQ(fleet.View()[0].job, "job");
  EXPECT_THAT(fleet.Expire(2.4), IsEmpty());
  EXPECT_DOUBLE_EQ(fleet.NextExpirySeconds(), 2.5);
}

TEST(FleetTest, OffersADoubtedStageOnlyAfterItsNextHeartbeat) {
  Fleet fleet(1.5);
  std::vector<LostStage> lost;
  ASSERT_TRUE(fleet.Register(Stage("a", "1"), At(0), &lost).ok());
  fleet.Doubt("a", "0");
  EXPECT_THAT(Usable(fleet, "job"), ElementsAre("a")) << "news of an older process";
  fleet.Doubt("a", "1");
  EXPECT_THAT(Usable(fleet, "job"), IsEmpty());
  EXPECT_TRUE(fleet.Renew(Beat("a", "1"), At(0.5)).value());
  EXPECT_FALSE(fleet.Renew(Beat("a", "1"), At(0.6)).value());
  EXPECT_THAT(Usable(fleet, "job"), ElementsAre("a"));
}

TEST(FleetTest, HoldsStagesForOneJobAtATime) {
  Fleet fleet(1.5);
  std::vector<LostStage> lost;
  for (const char* name : {"c", "a", "b"}) {
    ASSERT_TRUE(fleet.Register(Stage(name, "1"), At(0), &lost).ok());
  }
  EXPECT_TRUE(fleet.Hold("x", {"a", "c"}));
  EXPECT_FALSE(fleet.Hold("x", {"c", "a"}));
  EXPECT_THAT(Usable(fleet, "x"), ElementsAre("a", "b", "c"));
  EXPECT_THAT(Usable(fleet, "y"), ElementsAre("b"));
  EXPECT_TRUE(fleet.Hold("x", {}));
  EXPECT_THAT(Usable(fleet, "y"), ElementsAre("a", "b", "c"));
}

TEST(FleetTest, GivesNoJobToAStageThatDrains) {
  Fleet fleet(1.5);
  std::vector<LostStage> lost;
  ASSERT_TRUE(fleet.Register(Stage("a", "1"), At(0), &lost).ok());
  fleet.Hold("job", {"a"});
  StageHeartbeat beat = Beat("a", "1");
  beat.state = kDrainingState;
  ASSERT_TRUE(fleet.Renew(beat, At(1)).ok());
  EXPECT_EQ(fleet.View()[0].state, StageState::kDraining);
  EXPECT_EQ(fleet.View()[0].job, "job") << "what it does it may end";
  EXPECT_THAT(Usable(fleet, "job"), IsEmpty());
  fleet.Expire(3);
  EXPECT_EQ(fleet.View()[0].state, StageState::kLost);
  ASSERT_TRUE(fleet.Register(Stage("a", "2"), At(4), &lost).ok());
  EXPECT_EQ(fleet.View()[0].state, StageState::kReady);
}

TEST(FleetTest, ForgetsStagesLostLongAgo) {
  Fleet fleet(1.5);
  std::vector<LostStage> lost;
  ASSERT_TRUE(fleet.Register(Stage("a", "1"), At(0), &lost).ok());
  fleet.Expire(2);
  EXPECT_EQ(fleet.View().size(), 1u);
  fleet.Expire(Fleet::kForgetLostSeconds);
  EXPECT_THAT(fleet.View(), IsEmpty());
}

TEST(FleetTest, RefusesARegistrationWithoutNameAddressOrIncarnation) {
  Fleet fleet(1.5);
  std::vector<LostStage> lost;
  for (auto change : {+[](StageRegistration& s) { s.name.clear(); },
                      +[](StageRegistration& s) { s.address.clear(); },
                      +[](StageRegistration& s) { s.identity = std::string(300, 'x'); },
                      +[](StageRegistration& s) { s.incarnation = std::string(300, 'x'); }}) {
    StageRegistration stage = Stage("a", "1");
    change(stage);
    EXPECT_TRUE(absl::IsInvalidArgument(fleet.Register(stage, At(0), &lost)));
  }
}

}  // namespace
}  // namespace stagecoach
