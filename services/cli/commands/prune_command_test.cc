// Removal from the command line: which jobs are chosen, and that nothing goes unasked.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "base/threads/clock.h"
#include "services/cli/commands/commands.h"
#include "services/cli/output/exit_code.h"
#include "services/cli/testing/fake_job_client.h"

namespace stagecoach {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr double kDay = 86400;

class PruneTest : public testing::Test {
 protected:
  PruneTest() {
    context_.console = &console_;
    context_.stop = &stop_;
    context_.input = -1;
    context_.connect = [this](const ClientOptions&) -> absl::StatusOr<std::unique_ptr<JobClient>> {
      return std::make_unique<BorrowedJobClient>(&client_);
    };
    client_.job.set_id("live");
    client_.job.set_state(v1::JOB_STATE_RUNNING);
    Add("good", v1::JOB_STATE_SUCCEEDED, 40);
    Add("bad", v1::JOB_STATE_FAILED, 10);
    Add("ended", v1::JOB_STATE_CANCELLED, 20);
  }
  void Add(const std::string& id, v1::JobState state, double days) {
    v1::Job& job = client_.ended.emplace_back();
    job.set_id(id);
    job.set_state(state);
    job.set_finished_unix_seconds(SystemClock::Get()->UnixSeconds() - days * kDay);
    job.mutable_usage()->set_checkpoints(2);
    job.mutable_usage()->set_checkpoint_bytes(1 << 20);
  }
  std::vector<std::string> Chosen(const PruneOptions& options) {
    std::vector<std::string> ids;
    for (const v1::Job& job :
         JobsToPrune(*client_.List(), options, SystemClock::Get()->UnixSeconds())) {
      ids.push_back(job.id());
    }
    return ids;
  }
  // At a terminal, where somebody types this.
  int RunAtTerminal(const std::string& typed) {
    int outer = -1, inner = -1;
    EXPECT_EQ(openpty(&outer, &inner, nullptr, nullptr, nullptr), 0);
    EXPECT_EQ(write(outer, typed.data(), typed.size()), static_cast<ssize_t>(typed.size()));
    context_.input = inner;
    context_.console = &terminal_;
    const int code = RunPrune({}, context_);
    close(outer);
    close(inner);
    return code;
  }

  std::ostringstream out_, notes_;
  Console console_{out_, notes_, {}}, terminal_{out_, notes_, {.notes_are_terminal = true}};
  StopSignal stop_;
  FakeJobClient client_;
  CommandContext context_;
};

TEST_F(PruneTest, ChoosesEndedJobsByAgeNumberAndState) {
  EXPECT_THAT(Chosen({}), ElementsAre("bad", "ended", "good"));
  EXPECT_THAT(Chosen({.older_than_seconds = 15 * kDay}), ElementsAre("ended", "good"));
  EXPECT_THAT(Chosen({.keep = 1}), ElementsAre("ended", "good"));
  EXPECT_THAT(Chosen({.keep = 9}), IsEmpty());
  EXPECT_THAT(Chosen({.older_than_seconds = 30 * kDay, .keep = 2}), ElementsAre("good"));
  EXPECT_THAT(Chosen({.keep = 1, .states = {v1::JOB_STATE_SUCCEEDED, v1::JOB_STATE_FAILED}}),
              ElementsAre("good"));
  client_.ended[0].set_detail("set aside");
  EXPECT_THAT(Chosen({}), ElementsAre("bad", "ended"));
}

TEST_F(PruneTest, RemovesWithYesAndTellsWhatWasFreed) {
  EXPECT_EQ(RunPrune({.older_than_seconds = 15 * kDay, .yes = true}, context_), 0);
  EXPECT_THAT(client_.removed_jobs, ElementsAre("ended", "good"));
  EXPECT_THAT(out_.str(), AllOf(HasSubstr("good"), HasSubstr("1.0 MiB"), Not(HasSubstr("bad"))));
  EXPECT_EQ(notes_.str(), "removed 2 jobs, 2.0 MiB freed\n");
}

TEST_F(PruneTest, ADryRunRemovesNothing) {
  EXPECT_EQ(RunPrune({.dry_run = true, .yes = true}, context_), 0);
  EXPECT_THAT(client_.removed_jobs, IsEmpty());
  EXPECT_THAT(out_.str(), AllOf(HasSubstr("good"), HasSubstr("bad")));
  EXPECT_EQ(notes_.str(), "would remove 3 jobs, 3.0 MiB\n");
}

TEST_F(PruneTest, WithoutATerminalItRefusesAndNamesTheWayOut) {
  EXPECT_EQ(RunPrune({}, context_), kExitUsage);
  EXPECT_THAT(client_.removed_jobs, IsEmpty());
  EXPECT_THAT(notes_.str(), AllOf(HasSubstr("--yes"), HasSubstr("--dry-run")));
}

TEST_F(PruneTest, AtATerminalItAsks) {
  EXPECT_EQ(RunAtTerminal("\n"), kExitFailed) << notes_.str();
  EXPECT_EQ(RunAtTerminal("no\n"), kExitFailed);
  EXPECT_THAT(client_.removed_jobs, IsEmpty());
  EXPECT_THAT(notes_.str(), AllOf(HasSubstr("remove 3 jobs, 3.0 MiB? [y/N]"), HasSubstr("good"),
                                  HasSubstr("nothing was removed")));
  EXPECT_EQ(RunAtTerminal("Y\n"), 0);
  EXPECT_THAT(client_.removed_jobs, ElementsAre("bad", "ended", "good"));
}

TEST_F(PruneTest, AJobThatMayNotGoIsToldAndTheOthersGo) {
  client_.not_removable["bad"] = absl::FailedPreconditionError("job bad is used by job next");
  client_.not_removable["ended"] = absl::NotFoundError("job ended");  // another call was faster
  EXPECT_EQ(RunPrune({.yes = true}, context_), kExitFailed);
  EXPECT_THAT(client_.removed_jobs, ElementsAre("bad", "ended", "good"));
  EXPECT_THAT(notes_.str(), AllOf(HasSubstr("job bad is used by job next\n"),
                                  HasSubstr("removed 1 job, 1.0 MiB freed")));
  client_.removed_jobs.clear();
  client_.not_removable["bad"] = absl::UnavailableError("coordinator a:1: gone");
  EXPECT_EQ(RunPrune({.yes = true}, context_), kExitUnavailable);
  EXPECT_THAT(client_.removed_jobs, ElementsAre("bad")) << "it ends there";
}

TEST_F(PruneTest, AJobThatAnotherCallRemovedIsNoFailure) {
  client_.not_removable["ended"] = absl::NotFoundError("job ended");
  EXPECT_EQ(RunPrune({.yes = true}, context_), 0);
  EXPECT_THAT(notes_.str(), HasSubstr("removed 2 jobs"));
}

TEST_F(PruneTest, ProgramsGetTheJobsWithWhatTheyOccupied) {
  context_.output = OutputFormat::kJson;
  EXPECT_EQ(RunPrune({.yes = true}, context_), 0);
  const json said = json::parse(out_.str());
  ASSERT_EQ(said["jobs"].size(), 3u);
  EXPECT_EQ(said["jobs"][0]["id"], "bad");
  EXPECT_EQ(said["jobs"][0]["freed"]["checkpoint_bytes"], "1048576");
  out_.str("");
  context_.output = OutputFormat::kNdjson;
  EXPECT_EQ(RunPrune({.keep = 2, .yes = true}, context_), 0);
  EXPECT_EQ(json::parse(out_.str())["id"], "good");
}

TEST_F(PruneTest, OfCheckpointsTheCoordinatorDecides) {
  client_.removed.add_removed(4);
  client_.removed.set_freed_bytes(2048);
  EXPECT_EQ(RunRemoveCheckpoints({.job = "good", .steps = {4}, .missing_ok = true}, context_), 0);
  ASSERT_EQ(client_.removals.size(), 1u);
  EXPECT_EQ(client_.removals[0].job_id(), "good");
  EXPECT_THAT(client_.removals[0].steps(), ElementsAre(4));
  EXPECT_TRUE(client_.removals[0].missing_ok());
  EXPECT_EQ(notes_.str(), "job good: removed the checkpoints of step 4; 2.0 KiB freed\n");
  client_.reachable = absl::NotFoundError("job good has no checkpoint of step 4");
  EXPECT_EQ(RunRemoveCheckpoints({.job = "good", .steps = {4}}, context_), kExitNotFound);
}

}  // namespace
}  // namespace stagecoach
