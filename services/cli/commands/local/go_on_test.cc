// Going on with a job: the same one where it was only interrupted, a new one where it ended or
// where its result would be another.
#include "services/cli/commands/local/go_on.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "services/cli/commands/local/local_run.h"
#include "services/cli/commands/local/what_next.h"
#include "services/cli/testing/fake_job_client.h"

namespace stagecoach {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class GoOnTest : public testing::Test {
 protected:
  GoOnTest() {
    context_.console = &console_;
    context_.stop = &stop_;
    client_.job.set_id("tiny");
    *client_.job.mutable_spec() = Spec(2);
    client_.job.set_total_steps(60);
    client_.job.set_state(v1::JOB_STATE_PENDING);
    client_.job.set_detail("held");
    client_.job.set_step(37);
    client_.job.set_last_checkpoint_step(37);
    client_.resumed_after = 50;
    client_.checkpoints.add_checkpoints()->set_step(40);
    client_.checkpoints.mutable_checkpoints(0)->set_error("shard 0: digest");
    client_.checkpoints.add_checkpoints()->set_step(37);
  }
  static v1::JobSpec Spec(int64_t stages) {
    v1::JobSpec spec;
    spec.set_name("tiny");
    spec.mutable_training()->set_steps(60);
    spec.mutable_pipeline()->set_stages(stages);
    return spec;
  }
  void End(v1::JobState state) {
    client_.job.set_state(state);
    client_.job.set_detail("ended");
  }
  absl::StatusOr<StartedJob> Go(int64_t stages, int64_t steps, const std::string& id = "") {
    const v1::Job job = client_.job;
    return GoOn(client_, job, stages, steps, id, context_);
  }
  absl::StatusOr<StartedJob> Start(const v1::JobSpec& spec) {
    return StartOrGoOn(client_, "tiny", spec, 1, "do this or that", context_);
  }

  FakeJobClient client_;
  StopSignal stop_;
  std::ostringstream out_, notes_;
  Console console_{out_, notes_, {}};
  CommandContext context_;
};

// Seen: `local` in the folder of an interrupted run, with three stages instead of two, hung.
TEST_F(GoOnTest, AnInterruptedJobGoesOnWithAnotherNumberOfStagesAndSaysSo) {
  const auto started = Start(Spec(3));
  ASSERT_TRUE(started.ok()) << started.status();
  EXPECT_EQ(started->job.id(), "tiny");
  EXPECT_EQ(started->job.spec().pipeline().stages(), 3);
  EXPECT_EQ(started->after, 50u) << "what was shown before is not shown again";
  EXPECT_THAT(client_.resumed_stages, ElementsAre(3));
  EXPECT_EQ(client_.submits, 0);
  EXPECT_EQ(notes_.str(),
            "job tiny was interrupted at step 37 of 60 and goes on from the checkpoint of step 37, "
            "with 3 stages instead of 2\n");
}

TEST_F(GoOnTest, AJobThatWritesGoesOnWithoutACheckpoint) {
  client_.job.clear_last_checkpoint_step();
  EXPECT_THAT(GoesOnText(client_.job, 0), HasSubstr("from its beginning"));
  client_.job.mutable_spec()->mutable_write()->add_lines("a");
  EXPECT_EQ(GoesOnText(client_.job, 0), "job tiny was interrupted at step 37 of 60 and goes on");
}

TEST_F(GoOnTest, AChangedSpecIsShownAsTheFieldsThatDifferAndNothingRuns) {
  v1::JobSpec changed = Spec(3);
  changed.set_seed(7);
  const absl::Status status = Start(changed).status();
  EXPECT_TRUE(absl::IsAlreadyExists(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("  seed: 0 -> 7\n"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("do this or that"));
  EXPECT_THAT(client_.resumed_stages, IsEmpty());
}

TEST_F(GoOnTest, AnEndedJobIsGivenAsItIs) {
  End(v1::JOB_STATE_SUCCEEDED);
  const auto started = Start(Spec(3));
  ASSERT_TRUE(started.ok()) << started.status();
  EXPECT_EQ(started->job.state(), v1::JOB_STATE_SUCCEEDED);
  EXPECT_THAT(client_.resumed_stages, IsEmpty());
  EXPECT_EQ(client_.submits, 0);
}

TEST_F(GoOnTest, AnUnknownJobIsSubmitted) {
  client_.job.set_id("another");
  const auto started = Start(Spec(2));
  ASSERT_TRUE(started.ok()) << started.status();
  EXPECT_EQ(client_.submits, 1);
  EXPECT_EQ(started->after, 0u);
}

TEST_F(GoOnTest, AFailedJobGoesOnAsANewOneFromItsNewestCheckpointThatHolds) {
  End(v1::JOB_STATE_FAILED);
  client_.job.mutable_spec()->mutable_resume()->set_fresh_optimizer(true);  // of its own beginning
  client_.job.mutable_spec()->mutable_initialize()->set_from("/a");
  const auto started = Go(4, 0);
  ASSERT_TRUE(started.ok()) << started.status();
  EXPECT_FALSE(started->job.spec().resume().fresh_optimizer());
  EXPECT_FALSE(started->job.spec().has_initialize());
  EXPECT_EQ(started->job.id(), "tiny-2");
  EXPECT_EQ(started->job.spec().resume().job(), "tiny");
  EXPECT_EQ(started->job.spec().resume().step(), 37);
  EXPECT_EQ(started->job.spec().pipeline().stages(), 4);
  EXPECT_EQ(started->job.spec().training().steps(), 60);
  EXPECT_THAT(notes_.str(), HasSubstr("job tiny-2 goes on from the checkpoint of job tiny at step "
                                      "37, with 4 stages instead of 2"));
  // Symptom: a newer checkpoint that was damaged was passed over without a word.
  EXPECT_THAT(notes_.str(), HasSubstr("passed over: the checkpoint of step "));
}

TEST_F(GoOnTest, MoreStepsAreANewJobForTheResultIsAnotherOne) {
  const auto started = Go(0, 120, "longer");
  ASSERT_TRUE(started.ok()) << started.status();
  EXPECT_EQ(started->job.id(), "longer");
  EXPECT_EQ(started->job.spec().training().steps(), 120);
  EXPECT_EQ(started->job.spec().pipeline().stages(), 2);
  EXPECT_THAT(client_.resumed_stages, IsEmpty());
}

TEST_F(GoOnTest, WhatCannotGoOnSaysWhatToDoInstead) {
  client_.job.set_detail("running");
  EXPECT_THAT(std::string(Go(3, 0).status().message()), HasSubstr("stagecoach cancel tiny"));
  client_.job.set_detail("held");
  EXPECT_THAT(std::string(Go(3, 0, "new").status().message()), HasSubstr("leave --id out"));
  EXPECT_THAT(std::string(Go(0, 37).status().message()), HasSubstr("ask for more steps"));
  End(v1::JOB_STATE_CANCELLED);
  client_.checkpoints.Clear();
  EXPECT_THAT(std::string(Go(0, 0).status().message()),
              HasSubstr("has no checkpoint to go on from; submit its spec anew"));
  // Symptom: advice to train on a job whose weights had written texts.
  client_.job.mutable_spec()->mutable_write()->add_lines("a");
  EXPECT_THAT(std::string(Go(0, 0).status().message()),
              HasSubstr("writes texts, and an ended one does not go on"));
  client_.job.mutable_spec()->clear_write();
  // Symptom: nobody has the spec of a job that `resume` made.
  client_.job.mutable_spec()->mutable_resume()->set_job("before");
  EXPECT_THAT(std::string(Go(0, 0).status().message()),
              HasSubstr("it began from one of job before: stagecoach resume before --steps 60"));
  EXPECT_EQ(client_.submits, 0);
}

// "nothing is left to do; ask for more steps", of a job whose spec nobody could read.
TEST_F(GoOnTest, AJobThatWasSetAsideSaysWhy) {
  End(v1::JOB_STATE_FAILED);
  client_.job.set_detail("set aside");
  client_.job.set_message("DATA_LOSS: state of job tiny: not JSON");
  client_.job.clear_spec();
  for (const absl::Status& status : {Go(0, 0).status(), Start(Spec(2)).status()}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("job tiny cannot be resumed: DATA_LOSS: state of job tiny"));
  }
}

TEST(ShellWord, IsWhatAShellReadsBack) {
  EXPECT_EQ(ShellWord("/home/me/runs/tiny-1"), "/home/me/runs/tiny-1");
  EXPECT_EQ(ShellWord("my runs"), "'my runs'");
  EXPECT_EQ(ShellWord("it's"), "'it'\\''s'");
  EXPECT_EQ(ShellWord(""), "''");
}

}  // namespace
}  // namespace stagecoach
