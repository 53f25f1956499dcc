// Journal: the state that survives the coordinator, in one SQLite file. It has the term, every
// accepted job with its durable state, and the history of every job.
// Ownership: owns the database.  Threads: thread-compatible (the job loop's).
// Errors:    as Database. A failed write leaves the journal as it was. What is read is compared
//            with its checksum.
#ifndef STAGECOACH_COORDINATOR_JOURNAL_JOURNAL_H_
#define STAGECOACH_COORDINATOR_JOURNAL_JOURNAL_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/numbers/machine_random.h"
#include "base/threads/clock.h"
#include "coordinator/job/view/job_view.h"
#include "coordinator/journal/database.h"

namespace stagecoach {

struct JournalJob {
  std::string id;
  uint64_t sequence = 0;  // order of submission
  double submitted_unix_seconds = 0;
  std::string spec;        // as the codec wrote it
  std::string state;       // as EncodeJobState wrote it; empty: just accepted
  std::string owner = {};  // JobDefinition::owner
  bool intact = true;      // read: it has the checksums that it was written with
};

struct JournalUpdate {
  std::string job;
  std::string state;
  std::vector<JobRecord> records;
  ShownTexts shown = {};  // what is new of it
};

// The least term of a coordinator that starts now: the wall clock in milliseconds. Two starts are
// further apart than a millisecond. So a coordinator whose journal is an old copy takes no term
// that was used since, unless its clock went back too (JobLoop::MeetTerm).
uint64_t LeastTerm(const Clock& clock);
// If the clock went back, terms count on from the journal's. Each start leaves out a random number
// of them, below this bound. So two starts on one copy of a journal hardly ever have the same term.
// The bound is small beside what a clock gains between two starts.
inline constexpr uint64_t kMostSkippedTerms = 1000;

class Journal {
 public:
  // random: of a new journal's secret.
  static absl::StatusOr<std::unique_ptr<Journal>> Open(const std::string& path,
                                                       const RandomSource& random = MachineRandom);

  // 128 random bits of this journal's, as 32 hexadecimal digits. They are for keys that nobody may
  // guess without having read the journal.
  const std::string& secret() const { return secret_; }

  // Raises the term by one, or to `least` if that is more. Returns the new one, which is then on
  // disk. skip: terms to leave out above the last one, if that is `least` or more.
  absl::StatusOr<uint64_t> RaiseTerm(uint64_t least = 0, uint64_t skip = 0);
  // By sequence, one after the other: all specs at once may be much. `each` may read the journal.
  absl::Status EachJob(const std::function<void(const JournalJob& job)>& each);
  absl::StatusOr<std::string> Spec(const std::string& job);  // NOT_FOUND; DATA_LOSS: not intact
  absl::Status AddJob(const JournalJob& job);                // on disk when it returns
  absl::Status SetSpec(const std::string& job, const std::string& spec);  // likewise
  absl::Status Write(std::span<const JournalUpdate> updates);             // all of them, or none
  absl::StatusOr<ShownTexts> Shown(const std::string& job);
  // Records with number > after, in order, up to one that cannot be read: a page of them
  // (coordinator/job/view/record_page.h). DATA_LOSS: the first one cannot, because it is not as it
  // was written.
  absl::StatusOr<std::vector<JobRecord>> Records(const std::string& job, uint64_t after, int limit);
  absl::StatusOr<uint64_t> LastNumber(const std::string& job);
  // Drops every second step record of the older half while there are more than `most` records.
  // Other kinds stay.
  absl::Status Thin(const std::string& job, int64_t most);
  // The state folder at the last start; empty: this is the first.
  absl::StatusOr<std::string> Place();
  absl::Status SetPlace(const std::string& folder);
  // A job of this id was purged, and none has had it since.
  absl::StatusOr<bool> Forgot(const std::string& job);
  // This ended job goes, with its files: on disk when it returns. Purge ends the removal.
  absl::Status BeginRemoval(const std::string& job);
  absl::StatusOr<std::vector<std::string>> Removals();  // that are not over
  // Removes these jobs, the first one first, but at most about `rows` rows in one transaction. If a
  // job takes more, the rest of it waits for the next call. Returns how many are gone.
  absl::StatusOr<int> Purge(std::span<const std::string> jobs, int64_t rows);

 private:
  Journal(std::unique_ptr<Database> database, std::string secret)
      : database_(std::move(database)), secret_(std::move(secret)) {}
  absl::Status InTransaction(const std::function<absl::Status()>& work);
  absl::StatusOr<int> PurgeAll(std::span<const std::string> jobs, int64_t rows);
  absl::Status WriteAll(std::span<const JournalUpdate> updates);
  std::unique_ptr<Database> database_;
  const std::string secret_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_COORDINATOR_JOURNAL_JOURNAL_H_
