#include "coordinator/fleet/fleet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>

#include "base/testing/status_is.h"

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

class FleetTest : public testing::Test {
 protected:
  absl::Status Register(const StageRegistration& stage, double seconds) {
    return fleet_.Register(stage, At(seconds), &lost_);
  }

  Fleet fleet_{1.5};
  std::vector<LostStage> lost_;
};

// The story: one certificate registered 9,999 names in 7.5 s, and no new stage could register for
// an hour.
TEST_F(FleetTest, WhereThePlacesAreFullALostStageGivesWayToANewOne) {
  for (int i = 0; i < Fleet::kMaxStages; ++i) {
    ASSERT_TRUE(Register(Stage("ghost-" + std::to_string(i), "1"), i == 7 ? 9 : 10).ok());
  }
  const absl::Status full = Register(Stage("a", "1"), 10);
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted) << "all of them live";
  ASSERT_TRUE(fleet_.Renew(Beat("ghost-0", "1"), At(11)).ok());
  EXPECT_EQ(fleet_.Expire(11.6).size(), Fleet::kMaxStages - 1u);
  EXPECT_TRUE(Register(Stage("a", "1"), 11.6).ok());
  std::set<std::string> known;
  for (const StageView& view : fleet_.View()) known.insert(view.registration.name);
  EXPECT_EQ(known.size(), size_t{Fleet::kMaxStages});
  EXPECT_FALSE(known.contains("ghost-7")) << "it was silent for longest";
  EXPECT_TRUE(known.contains("ghost-0") && known.contains("a"));
}

TEST_F(FleetTest, ACertificateHasSoManyStagesAtATimeAndItsOwnLostOnesGiveWay) {
  const auto add = [&](const std::string& name, const std::string& certificate, double seconds) {
    StageRegistration registration = Stage(name, "1");
    registration.certificate = certificate;
    return Register(registration, seconds);
  };
  ASSERT_TRUE(add("other", "other", 0).ok());
  ASSERT_TRUE(add("box-1", "box-1", 0).ok());
  for (int i = 0; i < Fleet::kMostOfCertificate; ++i) {
    ASSERT_TRUE(add("box-" + std::to_string(2000 + i), "box", i == 7 ? 9 : 10).ok());
  }
  EXPECT_THAT(add("box-9000", "box", 10),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       AllOf(HasSubstr("stage box-9000"),
                             HasSubstr("certificate of box has 1024 stages"))));
  EXPECT_FALSE(add("box-1", "box", 10).ok()) << "a name of another one's, which it takes over";
  EXPECT_TRUE(add("box-2000", "box", 10).ok()) << "it has this one";
  EXPECT_TRUE(add("none", "", 10).ok()) << "without a certificate there is no such limit";
  EXPECT_TRUE(add("other-2", "other", 10).ok());
  fleet_.Expire(10.6);
  EXPECT_TRUE(add("box-9000", "box", 10.6).ok());
  std::set<std::string> known;
  for (const StageView& view : fleet_.View()) known.insert(view.registration.name);
  EXPECT_FALSE(known.contains("box-2007")) << "its lost one, not the one that was lost before";
  EXPECT_TRUE(known.contains("other") && known.contains("box-9000"));
}

// Certificates "gpu" and "gpu-2000" exist: the second one's name is one of the first one's, too.
TEST_F(FleetTest, AStageUnderItsOwnCertificateGivesWayToNoOther) {
  const auto add = [&](const std::string& certificate, const std::string& instance,
                       double seconds) {
    StageRegistration registration = Stage("gpu-2000", instance);
    registration.certificate = certificate;
    return Register(registration, seconds);
  };
  ASSERT_TRUE(add("gpu-2000", "1", 0).ok());
  fleet_.Expire(5);
  EXPECT_THAT(add("gpu", "2", 6),
              StatusIs(absl::StatusCode::kPermissionDenied,
                       AllOf(HasSubstr("stage gpu-2000"), HasSubstr("--name"))));
  EXPECT_TRUE(add("gpu-2000", "3", 7).ok());
}

TEST_F(FleetTest, LosesASilentStageExactlyWhenItsLeaseEnds) {
  ASSERT_TRUE(Register(Stage("a", "1"), 10).ok());
  fleet_.Hold("job", {"a"});
  ASSERT_TRUE(fleet_.Renew(Beat("a", "1"), At(11)).ok());
  EXPECT_LE(fleet_.NextExpirySeconds(), 12.5);
  EXPECT_THAT(fleet_.Expire(12.4), IsEmpty());
  EXPECT_DOUBLE_EQ(fleet_.NextExpirySeconds(), 12.5) << "exact once it has looked";
  const std::vector<LostStage> expired = fleet_.Expire(12.5);
  ASSERT_EQ(expired.size(), 1u);
  EXPECT_EQ(expired[0].job, "job");
  EXPECT_THAT(expired[0].reason, HasSubstr("stage a was silent for 1.5 s"));
  EXPECT_THAT(fleet_.Expire(13), IsEmpty()) << "lost once";
  EXPECT_TRUE(absl::IsNotFound(fleet_.Renew(Beat("a", "1"), At(13)).status()))
      << "an ended lease does not come back by itself";
  EXPECT_TRUE(std::isinf(fleet_.NextExpirySeconds()));
  EXPECT_EQ(fleet_.alive(), 0);
  EXPECT_EQ(fleet_.View()[0].state, StageState::kLost);
  EXPECT_EQ(fleet_.View()[0].totals.uptime_seconds, 7) << "what it last told stays on show";
  ASSERT_TRUE(Register(Stage("a", "1"), 14).ok());
  EXPECT_THAT(lost_, IsEmpty());
  EXPECT_THAT(Usable(fleet_, "any"), ElementsAre("a"));
}

TEST_F(FleetTest, ReplacesAnOlderIncarnationWhichIsThenLostToItsJob) {
  ASSERT_TRUE(Register(Stage("a", "1"), 0).ok());
  fleet_.Hold("job", {"a"});
  ASSERT_TRUE(Register(Stage("a", "2"), 1).ok());
  ASSERT_EQ(lost_.size(), 1u);
  EXPECT_EQ(lost_[0].incarnation, "1");
  EXPECT_EQ(lost_[0].job, "job");
  EXPECT_TRUE(absl::IsNotFound(fleet_.Renew(Beat("a", "1"), At(1.1)).status()));
  EXPECT_THAT(Usable(fleet_, "other"), ElementsAre("a")) << "the new process works for nobody";
}

// A stage on a second machine was given the name of one at work; both took it from each other in
// turn, each time the job recovered, and after 27 recoveries it had failed.
TEST_F(FleetTest, ASecondProcessWithANameInUseIsRefusedAndTheJobKeepsItsStage) {
  ASSERT_TRUE(Register(Stage("a", "1"), 0).ok());
  fleet_.Hold("job", {"a"});
  const absl::Status refused = Register(Stranger("a", "2"), 1);
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kAlreadyExists,
                                AllOf(HasSubstr("a:8101"), HasSubstr("elsewhere:8101"),
                                      HasSubstr("--name"))));
  EXPECT_EQ(Register(Stranger("a", "2"), 1.1), refused)
      << "the same words, so that they are logged once";
  EXPECT_THAT(lost_, IsEmpty());
  EXPECT_TRUE(fleet_.Renew(Beat("a", "1"), At(1.4)).ok());
  EXPECT_EQ(fleet_.View()[0].job, "job");
  EXPECT_FALSE(Register(Stranger("a", "2"), 2.89).ok());
  ASSERT_TRUE(Register(Stranger("a", "2"), 2.9).ok()) << "the lease has ended";
  ASSERT_EQ(lost_.size(), 1u) << "which nobody had noticed yet";
  EXPECT_EQ(lost_[0].job, "job");
}

TEST_F(FleetTest, WithoutAnIdentityEvenARestartedProcessWaitsForTheLease) {
  StageRegistration first = Stage("a", "1"), second = Stage("a", "2");
  first.identity.clear();
  second.identity.clear();
  ASSERT_TRUE(Register(first, 0).ok());
  EXPECT_EQ(Register(second, 1).code(), absl::StatusCode::kAlreadyExists);
  EXPECT_TRUE(Register(second, 1.5).ok());
}

// A machine was cloned with the state of its stage: both copies live and have one identity.
TEST_F(FleetTest, AProcessThatWasReplacedDoesNotTakeTheNameBackFromALivingSuccessor) {
  StageRegistration copy = Stage("a", "2");
  copy.address = "clone:8101";
  ASSERT_TRUE(Register(Stage("a", "1"), 0).ok());
  ASSERT_TRUE(Register(copy, 1).ok()) << "looks like its restart";
  lost_.clear();
  EXPECT_THAT(
      Register(Stage("a", "1"), 1.1),
      StatusIs(absl::StatusCode::kAlreadyExists,
               AllOf(HasSubstr("clone:8101"), HasSubstr("a:8101"), HasSubstr("was copied"))));
  EXPECT_THAT(lost_, IsEmpty());
  fleet_.Expire(3);
  ASSERT_TRUE(Register(Stage("a", "1"), 3).ok()) << "the copy is gone";
  EXPECT_FALSE(Register(copy, 3.1).ok()) << "and may not come back either";
  EXPECT_TRUE(Register(Stage("a", "3"), 3.2).ok()) << "a restart still may";
}

TEST_F(FleetTest, TakesARepeatedRegistrationForARenewal) {
  ASSERT_TRUE(Register(Stage("a", "1"), 0).ok());
  fleet_.Hold("job", {"a"});
  ASSERT_TRUE(Register(Stage("a", "1"), 1).ok());
  EXPECT_THAT(lost_, IsEmpty());
  EXPECT_EQ(fleet_.View()[0].job, "job");
  EXPECT_THAT(fleet_.Expire(2.4), IsEmpty());
  EXPECT_DOUBLE_EQ(fleet_.NextExpirySeconds(), 2.5);
}

TEST_F(FleetTest, OffersADoubtedStageOnlyAfterItsNextHeartbeat) {
  ASSERT_TRUE(Register(Stage("a", "1"), 0).ok());
  fleet_.Doubt("a", "0");
  EXPECT_THAT(Usable(fleet_, "job"), ElementsAre("a")) << "news of an older process";
  fleet_.Doubt("a", "1");
  EXPECT_THAT(Usable(fleet_, "job"), IsEmpty());
  EXPECT_TRUE(fleet_.Renew(Beat("a", "1"), At(0.5)).value());
  EXPECT_FALSE(fleet_.Renew(Beat("a", "1"), At(0.6)).value());
  EXPECT_THAT(Usable(fleet_, "job"), ElementsAre("a"));
}

TEST_F(FleetTest, HoldsStagesForOneJobAtATime) {
  for (const char* name : {"c", "a", "b"}) {
    ASSERT_TRUE(Register(Stage(name, "1"), 0).ok());
  }
  EXPECT_TRUE(fleet_.Hold("x", {"a", "c"}));
  EXPECT_FALSE(fleet_.Hold("x", {"c", "a"}));
  EXPECT_THAT(Usable(fleet_, "x"), ElementsAre("a", "b", "c"));
  EXPECT_THAT(Usable(fleet_, "y"), ElementsAre("b"));
  EXPECT_TRUE(fleet_.Hold("x", {}));
  EXPECT_THAT(Usable(fleet_, "y"), ElementsAre("a", "b", "c"));
}

TEST_F(FleetTest, GivesNoJobToAStageThatDrains) {
  ASSERT_TRUE(Register(Stage("a", "1"), 0).ok());
  fleet_.Hold("job", {"a"});
  StageHeartbeat beat = Beat("a", "1");
  beat.state = kDrainingState;
  ASSERT_TRUE(fleet_.Renew(beat, At(1)).ok());
  EXPECT_EQ(fleet_.View()[0].state, StageState::kDraining);
  EXPECT_EQ(fleet_.View()[0].job, "job") << "what it does it may end";
  EXPECT_THAT(Usable(fleet_, "job"), IsEmpty());
  fleet_.Expire(3);
  EXPECT_EQ(fleet_.View()[0].state, StageState::kLost);
  ASSERT_TRUE(Register(Stage("a", "2"), 4).ok());
  EXPECT_EQ(fleet_.View()[0].state, StageState::kReady);
}

TEST_F(FleetTest, ForgetsStagesLostLongAgo) {
  ASSERT_TRUE(Register(Stage("a", "1"), 0).ok());
  fleet_.Expire(2);
  EXPECT_EQ(fleet_.View().size(), 1u);
  fleet_.Expire(Fleet::kForgetLostSeconds);
  EXPECT_THAT(fleet_.View(), IsEmpty());
}

TEST_F(FleetTest, RefusesARegistrationWithoutNameAddressOrIncarnation) {
  for (auto change : {+[](StageRegistration& s) { s.name.clear(); },
                      +[](StageRegistration& s) { s.address.clear(); },
                      +[](StageRegistration& s) { s.identity = std::string(300, 'x'); },
                      +[](StageRegistration& s) { s.incarnation = std::string(300, 'x'); }}) {
    StageRegistration stage = Stage("a", "1");
    change(stage);
    EXPECT_TRUE(absl::IsInvalidArgument(Register(stage, 0)));
  }
}

}  // namespace
}  // namespace stagecoach
