// The journal's promise at every call that it makes to the disk: what it said is on disk is there for the next process,
// and nothing is there by halves, whether that call fails, the process ends at it, or the power.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <filesystem>
#include <map>
#include <string>

#include "base/sanitized.h"
#include "coordinator/journal/fault_disk_testing.h"
#include "coordinator/journal/journal.h"

namespace stagecoach {
namespace {

using Fault = FaultDisk::Fault;

// Checkpoints of the log, which are every thousand pages, come in so small a history too.
int OftenIntoTheDatabase(sqlite3* database, char**, const sqlite3_api_routines*) {
  return sqlite3_wal_autocheckpoint(database, 6);
}

constexpr int kRounds = 6;
constexpr int kRecords = 3;  // of a round

// What the journal has promised; in memory that outlives the process which was promised it.
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

// A coordinator's life in short, from an empty folder or from what another one left; an error of one call keeps none of
// the later ones from being made.
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
  JournalCrashTest() {
    sqlite3_auto_extension(reinterpret_cast<void (*)()>(OftenIntoTheDatabase));
    std::string pattern = std::filesystem::exists("/dev/shm") ? "/dev/shm" : "/tmp";
    pattern += "/stagecoach-journal-XXXXXX";
    CHECK(mkdtemp(pattern.data()) != nullptr) << "no temporary folder";
    folder_ = pattern;
    promises_ = static_cast<Promises*>(
        mmap(nullptr, sizeof(Promises), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    CHECK(promises_ != MAP_FAILED) << "no memory to share";
  }
  ~JournalCrashTest() override {
    sqlite3_cancel_auto_extension(reinterpret_cast<void (*)()>(OftenIntoTheDatabase));
    munmap(promises_, sizeof(Promises));
    std::filesystem::remove_all(folder_);
  }
  std::string path() const { return folder_ + "/journal.sqlite"; }

  // How many calls there were.
  int64_t LiveWith(int64_t call, Fault fault) {
    FaultDisk disk;
    disk.Inject(call, fault);
    Live(path(), promises_);
    return disk.calls();
  }

  void LiveAndCheck(int64_t call, Fault fault) {
    for (const auto& file : std::filesystem::directory_iterator(folder_)) {
      std::filesystem::remove(file);
    }
    *promises_ = {};
    if (!FaultDisk::Ends(fault)) {
      LiveWith(call, fault);
    } else {
      const pid_t child = fork();
      if (child == 0) {
        LiveWith(call, fault);
        _exit(7);  // it never got to that call
      }
      int status = 0;
      ASSERT_EQ(waitpid(child, &status, 0), child);
      ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    }
    CheckAfter(path(), *promises_);
  }

  std::string folder_;
  Promises* promises_;
};

TEST_P(JournalCrashTest, NoCallToTheDiskCanLoseWhatWasPromised) {
  const int64_t calls = LiveWith(0, Fault::kError);
  ASSERT_TRUE(promises_->purged && promises_->respecified[kRounds - 1]) << "an undisturbed life";
  CheckAfter(path(), *promises_);
  ASSERT_GT(calls, 150) << "with checkpoints of the log in between";
  // A sanitizer makes each of these processes slow, and runs the same code at all of these calls.
  for (int64_t call = 1; call <= calls; call += kSanitized ? 13 : 1) {
    SCOPED_TRACE(absl::StrCat("call ", call, " of ", calls));
    LiveAndCheck(call, GetParam());
    if (HasFailure()) return;
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
