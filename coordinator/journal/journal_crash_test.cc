// The journal's promise at every call that it makes to the disk: what it said is on disk is there
// for the next process, and nothing is there by halves, whether that call fails, the process ends
// at it, or the power.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/sanitized.h"
#include "coordinator/journal/journal.h"
#include "coordinator/testing/memory_disk.h"

namespace stagecoach {
namespace {

enum class Fault {
  kError,      // the call answers an I/O error, the later ones work
  kErrors,     // and so do all later ones
  kFull,       // a write answers that the disk is full; other calls work
  kCrash,      // the process ends; what was written stays
  kPowerCut,   // what was not synced is gone
  kPowerSome,  // of that, any part is there
  kPowerHalf,  // the write itself is torn, and all before it is there
};

// Checkpoints of the log, which are every thousand pages, come in so small a history too.
int OftenIntoTheDatabase(sqlite3* database, char**, const sqlite3_api_routines*) {
  return sqlite3_wal_autocheckpoint(database, 6);
}

constexpr int kRounds = 6;
constexpr int kRecords = 3;  // of a round

// What the journal has promised.
struct Promises {
  uint64_t term = 0;
  bool added[kRounds] = {}, written[kRounds] = {}, respecified[kRounds] = {};
  bool tried_purge = false, purged = false;
};

std::string JobOf(int round) { return absl::StrCat("job-", round); }
// Longer than a page, so that half of it would be seen.
std::string SpecOf(int round, const char* form) {
  return absl::StrCat(form, " of ", round, std::string(3000 + 700 * round, 's'));
}

JournalUpdate UpdateOf(int round) {
  JournalUpdate update{JobOf(round), absl::StrCat("state of ", round), {}};
  for (int i = 1; i <= kRecords; ++i) {
    JobRecord record;
    record.number = static_cast<uint64_t>(i);
    record.kind = JobRecord::Kind::kStep;
    record.step = static_cast<uint64_t>(i);
    record.message = std::string(900, 'm');
    update.records.push_back(std::move(record));
  }
  update.shown.pictures = std::string(2500, 'p');
  return update;
}

// A coordinator's life in short, from an empty folder or from what another one left; an error of
// one call keeps none of the later ones from being made.
void Live(const std::string& path, Promises* promises) {
  for (int life = 0; life < 2; ++life) {
    const absl::StatusOr<std::unique_ptr<Journal>> journal = Journal::Open(path);
    if (!journal.ok()) continue;
    if (const auto term = (*journal)->RaiseTerm(); term.ok()) promises->term = *term;
    for (int round = 3 * life; round < 3 * life + 3; ++round) {
      const JournalJob job{JobOf(round), static_cast<uint64_t>(round + 1),
                           1.5,          SpecOf(round, "spec"),
                           "",           absl::StrCat("user/", round)};
      promises->added[round] = (*journal)->AddJob(job).ok();
      if (!promises->added[round]) continue;
      const JournalUpdate updates[] = {UpdateOf(round)};
      promises->written[round] = (*journal)->Write(updates).ok();
      promises->respecified[round] = (*journal)->SetSpec(JobOf(round), SpecOf(round, "next")).ok();
    }
    if (life == 0) continue;
    const std::string first[] = {JobOf(0)};
    promises->tried_purge = true;
    const absl::StatusOr<int> gone = (*journal)->Purge(first, 1000);
    promises->purged = gone.ok() && *gone == 1;
  }
}

void CheckJob(Journal& journal, const JournalJob& job, int round, const Promises& promises) {
  EXPECT_EQ(job.owner, absl::StrCat("user/", round)) << "a job and its owner are one";
  EXPECT_TRUE(job.spec == SpecOf(round, "spec") || job.spec == SpecOf(round, "next"))
      << job.spec.substr(0, 20) << ", " << job.spec.size() << " bytes";
  if (promises.respecified[round]) {
    EXPECT_EQ(job.spec, SpecOf(round, "next"));
  }
  const auto records = journal.Records(job.id, 0, 100);
  const auto shown = journal.Shown(job.id);
  ASSERT_TRUE(records.ok()) << records.status();
  ASSERT_TRUE(shown.ok()) << shown.status();
  const bool has_state = !job.state.empty();
  EXPECT_EQ(records->size(), has_state ? kRecords : 0u) << "a state and its records are one";
  EXPECT_EQ(shown->pictures.empty(), !has_state);
  if (promises.written[round]) {
    EXPECT_EQ(job.state, absl::StrCat("state of ", round));
  }
}

// By the next process.
void CheckAfter(const std::string& path, const Promises& promises) {
  const absl::StatusOr<std::unique_ptr<Journal>> journal = Journal::Open(path);
  ASSERT_TRUE(journal.ok()) << journal.status();
  std::map<std::string, JournalJob> jobs;
  const absl::Status read =
      (*journal)->EachJob([&](const JournalJob& job) { jobs.emplace(job.id, job); });
  ASSERT_TRUE(read.ok()) << read;
  for (int round = 0; round < kRounds; ++round) {
    const auto job = jobs.find(JobOf(round));
    if (job != jobs.end()) CheckJob(**journal, job->second, round, promises);
    if (job == jobs.end()) {
      EXPECT_TRUE(!promises.added[round] || (round == 0 && promises.tried_purge))
          << JobOf(round) << " is forgotten";
    }
  }
  if (promises.purged) {
    EXPECT_FALSE(jobs.contains(JobOf(0)));
  }
  const absl::StatusOr<uint64_t> term = (*journal)->RaiseTerm();
  ASSERT_TRUE(term.ok()) << term.status();
  EXPECT_GT(*term, promises.term) << "a term is not taken twice";
}

class JournalCrashTest : public ::testing::TestWithParam<Fault> {
 protected:
  static constexpr char kPath[] = "/state/journal.sqlite";

  JournalCrashTest() { sqlite3_auto_extension(reinterpret_cast<void (*)()>(OftenIntoTheDatabase)); }
  ~JournalCrashTest() override {
    sqlite3_cancel_auto_extension(reinterpret_cast<void (*)()>(OftenIntoTheDatabase));
  }

  // How many calls there were. A process that has ended changes nothing more, and is promised
  // nothing more.
  static int64_t LiveAndCheck(int64_t call, Fault fault) {
    using State = MemoryDisk::State;
    static constexpr State kStates[] = {State::kGood, State::kFails, State::kFull};
    MemoryDisk disk;
    disk.Inject(call, fault < Fault::kCrash ? kStates[static_cast<int>(fault)] : State::kFrozen,
                fault == Fault::kPowerHalf);
    Promises promises;
    Live(kPath, &promises);
    const int64_t calls = disk.calls();
    EXPECT_TRUE(call > 0 || (promises.purged && promises.respecified[kRounds - 1]))
        << "an undisturbed life";
    disk.Set(State::kGood);
    if (fault == Fault::kPowerCut) disk.CutPower();
    if (fault == Fault::kPowerSome) disk.CutPower(MemoryDisk::Unsynced::kInPart);
    CheckAfter(kPath, promises);
    return calls;
  }
};

TEST_P(JournalCrashTest, NoCallToTheDiskCanLoseWhatWasPromised) {
  const int64_t calls = LiveAndCheck(0, Fault::kError);
  ASSERT_GT(calls, 150) << "with checkpoints of the log in between";
  for (int64_t call = 1; call <= calls && !HasFailure(); call += kSanitized ? 13 : 1) {
    SCOPED_TRACE(absl::StrCat("call ", call, " of ", calls));
    LiveAndCheck(call, GetParam());
  }
}

std::string NameOf(const ::testing::TestParamInfo<Fault>& info) {
  static constexpr const char* kNames[] = {"Error",    "Errors",    "Full",     "Crash",
                                           "PowerCut", "PowerSome", "PowerHalf"};
  return kNames[static_cast<int>(info.param)];
}

INSTANTIATE_TEST_SUITE_P(Faults, JournalCrashTest,
                         ::testing::Values(Fault::kError, Fault::kErrors, Fault::kFull,
                                           Fault::kCrash, Fault::kPowerCut, Fault::kPowerSome,
                                           Fault::kPowerHalf),
                         NameOf);

}  // namespace
}  // namespace stagecoach
