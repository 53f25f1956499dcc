#include "coordinator/journal/journal.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/errors/status.h"
#include "base/utf8.h"
#include "coordinator/job/view/record_page.h"
#include "coordinator/journal/record_list.h"
#include "coordinator/journal/row_checksums.h"

namespace stagecoach {
namespace {

constexpr char kSchema[] = R"(
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS jobs (
  id TEXT PRIMARY KEY, sequence INTEGER NOT NULL UNIQUE, submitted REAL NOT NULL,
  spec TEXT NOT NULL, state TEXT NOT NULL, owner TEXT NOT NULL,
  entry_crc INTEGER NOT NULL, state_crc INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS records (
  job TEXT NOT NULL, number INTEGER NOT NULL, kind INTEGER NOT NULL, unix_seconds REAL,
  step INTEGER NOT NULL, phase INTEGER NOT NULL, message TEXT NOT NULL, loss REAL,
  learning_rate REAL, gradient_norm REAL, tokens_per_second REAL, step_seconds REAL, bubble REAL,
  bubble_ideal REAL, skipped INTEGER NOT NULL, nonfinite_steps INTEGER NOT NULL,
  weights_digest TEXT NOT NULL, measures TEXT NOT NULL, crc INTEGER NOT NULL,
  PRIMARY KEY (job, number)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS shown (
  job TEXT PRIMARY KEY, pictures TEXT NOT NULL DEFAULT '', pictures_crc INTEGER NOT NULL DEFAULT 0,
  answers TEXT NOT NULL DEFAULT '', answers_crc INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS place (key INTEGER PRIMARY KEY, folder TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS forgotten (job TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS removals (job TEXT PRIMARY KEY) WITHOUT ROWID;
INSERT OR IGNORE INTO meta VALUES ('format', 1);
INSERT OR IGNORE INTO meta VALUES ('term', 0);
)";
constexpr int64_t kFormat = 1;

absl::Status CheckFormat(Database& database) {
  ASSIGN_OR_RETURN(Statement query,
                   Statement::Prepare(database, "SELECT value FROM meta WHERE key = 'format'"));
  ASSIGN_OR_RETURN(const bool found, query.Step());
  if (found && query.Integer(0) == kFormat) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("journal ", database.path(), " has format ", found ? query.Integer(0) : 0,
                   ", this program reads ", kFormat, "; use the version that wrote it"));
}

// The first one that is told stays.
absl::Status AddSecret(Database& database, const RandomSource& random) {
  const auto word = [&random] { return static_cast<int64_t>(random()); };
  ASSIGN_OR_RETURN(Statement insert,
                   Statement::Prepare(database,
                                      "INSERT OR IGNORE INTO meta SELECT 'secret_0', ?1 UNION ALL "
                                      "SELECT 'secret_1', ?2"));
  return insert.Bind(word()).Bind(word()).Run();
}

absl::StatusOr<std::string> ReadSecret(Database& database) {
  ASSIGN_OR_RETURN(
      Statement query,
      Statement::Prepare(database,
                         "SELECT a.value, b.value FROM meta a, meta b WHERE a.key = 'secret_0' AND "
                         "b.key = 'secret_1' AND typeof(a.value) = 'integer' AND "
                         "typeof(b.value) = 'integer'"));
  ASSIGN_OR_RETURN(const bool found, query.Step());
  if (!found)
    return absl::DataLossError(
        absl::StrCat("journal ", database.path(),
                     ": its secret is missing or damaged; restore the journal from a backup"));
  return absl::StrFormat("%016x%016x", static_cast<uint64_t>(query.Integer(0)),
                         static_cast<uint64_t>(query.Integer(1)));
}

constexpr char kRecordColumns[] =
    "number, kind, unix_seconds, step, phase, message, loss, learning_rate, gradient_norm, "
    "tokens_per_second, step_seconds, bubble, bubble_ideal, skipped, nonfinite_steps, "
    "weights_digest, measures, crc";

void BindRecord(Statement& statement, const std::string& job, const JobRecord& record) {
  const std::string list = ListText(record);
  statement.Bind(job)
      .Bind(static_cast<int64_t>(record.number))
      .Bind(static_cast<int64_t>(record.kind))
      .Bind(record.unix_seconds)
      .Bind(static_cast<int64_t>(record.step))
      .Bind(static_cast<int64_t>(record.phase))
      .Bind(record.message)
      .Bind(record.loss)
      .Bind(record.learning_rate)
      .Bind(record.gradient_norm)
      .Bind(record.tokens_per_second)
      .Bind(record.step_seconds)
      .Bind(record.bubble)
      .Bind(record.bubble_ideal)
      .Bind(static_cast<int64_t>(record.skipped))
      .Bind(static_cast<int64_t>(record.nonfinite_steps))
      .Bind(record.weights_digest)
      .Bind(list)
      .Bind(static_cast<int64_t>(RecordChecksum(job, record, list)));
}

absl::StatusOr<JobRecord> ReadRecord(const std::string& job, const Statement& row) {
  const int64_t kind = row.Integer(1), phase = row.Integer(4);
  if (kind < 0 || kind > static_cast<int64_t>(JobRecord::Kind::kWritten) || phase < 0 ||
      phase > static_cast<int64_t>(JobPhase::kHeld)) {
    return absl::DataLossError(absl::StrCat("record ", row.Integer(0), " of job ", job,
                                            " has kind ", kind, " and phase ", phase,
                                            ", which this version does not know"));
  }
  JobRecord record;
  record.number = static_cast<uint64_t>(row.Integer(0));
  record.kind = static_cast<JobRecord::Kind>(kind);
  record.unix_seconds = row.Real(2);
  record.step = static_cast<uint64_t>(row.Integer(3));
  record.phase = static_cast<JobPhase>(phase);
  record.message = row.Text(5);
  record.loss = row.Real(6);
  record.learning_rate = row.Real(7);
  record.gradient_norm = row.Real(8);
  record.tokens_per_second = row.Real(9);
  record.step_seconds = row.Real(10);
  record.bubble = row.Real(11);
  record.bubble_ideal = row.Real(12);
  record.skipped = row.Integer(13) != 0;
  record.nonfinite_steps = static_cast<uint64_t>(row.Integer(14));
  record.weights_digest = row.Text(15);
  const std::string list = row.Text(16);
  if (row.Integer(17) != RecordChecksum(job, record, list)) {
    return absl::DataLossError(absl::StrCat("record ", record.number, " of job ", job,
                                            " has another checksum than it was written with"));
  }
  record.message = ShownText(record.message);
  RETURN_IF_ERROR(
      Annotate(ReadList(list, &record), absl::StrCat("record ", record.number, " of job ", job)));
  return record;
}

uint32_t EntryChecksumOf(const JournalJob& job) {
  return EntryChecksum(job.id, job.sequence, job.submitted_unix_seconds, job.spec, job.owner);
}

absl::Status WriteShown(Database& database, const JournalUpdate& update, const std::string& column,
                        const std::string& text) {
  if (text.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(
      Statement write,
      Statement::Prepare(database, absl::StrCat("INSERT INTO shown (job, ", column, ", ", column,
                                                "_crc) VALUES (?, ?, ?) ON CONFLICT (job) DO "
                                                "UPDATE SET ",
                                                column, " = excluded.", column, ", ", column,
                                                "_crc = excluded.", column, "_crc")));
  return write.Bind(update.job)
      .Bind(text)
      .Bind(static_cast<int64_t>(TextChecksum(update.job, text)))
      .Run();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Journal>> Journal::Open(const std::string& path,
                                                       const RandomSource& random) {
  ASSIGN_OR_RETURN(std::unique_ptr<Database> database, Database::Open(path));
  RETURN_IF_ERROR(database->Execute(kSchema));
  RETURN_IF_ERROR(CheckFormat(*database));
  RETURN_IF_ERROR(AddSecret(*database, random));
  ASSIGN_OR_RETURN(std::string secret, ReadSecret(*database));
  return std::unique_ptr<Journal>(new Journal(std::move(database), std::move(secret)));
}

uint64_t LeastTerm(const Clock& clock) {
  constexpr int64_t kNanosPerMilli = 1'000'000;
  return static_cast<uint64_t>(std::max<int64_t>(0, clock.UnixNanos() / kNanosPerMilli));
}

absl::StatusOr<uint64_t> Journal::RaiseTerm(uint64_t least, uint64_t skip) {
  ASSIGN_OR_RETURN(
      Statement update,
      Statement::Prepare(*database_,
                         "UPDATE meta SET value = CASE WHEN ?1 > value THEN ?1 ELSE value + 1 + ?2 "
                         "END WHERE key = 'term'"));
  RETURN_IF_ERROR(update.Bind(static_cast<int64_t>(least)).Bind(static_cast<int64_t>(skip)).Run());
  ASSIGN_OR_RETURN(Statement query,
                   Statement::Prepare(*database_, "SELECT value FROM meta WHERE key = 'term'"));
  ASSIGN_OR_RETURN(const bool found, query.Step());
  if (!found)
    return absl::DataLossError(
        absl::StrCat("journal ", database_->path(), ": the term is missing"));
  return static_cast<uint64_t>(query.Integer(0));
}

absl::Status Journal::EachJob(const std::function<void(const JournalJob& job)>& each) {
  ASSIGN_OR_RETURN(
      Statement query,
      Statement::Prepare(
          *database_,
          "SELECT id, sequence, submitted, spec, state, owner, entry_crc, state_crc FROM jobs "
          "ORDER BY sequence"));
  while (true) {
    ASSIGN_OR_RETURN(const bool row, query.Step());
    if (!row) return absl::OkStatus();
    JournalJob job{query.Text(0), static_cast<uint64_t>(query.Integer(1)),
                   query.Real(2), query.Text(3),
                   query.Text(4), query.Text(5)};
    job.intact = query.Integer(6) == EntryChecksumOf(job) &&
                 query.Integer(7) == TextChecksum(job.id, job.state);
    each(job);
  }
}

absl::StatusOr<std::string> Journal::Spec(const std::string& job) {
  ASSIGN_OR_RETURN(
      Statement query,
      Statement::Prepare(
          *database_, "SELECT sequence, submitted, spec, owner, entry_crc FROM jobs WHERE id = ?"));
  ASSIGN_OR_RETURN(const bool row, query.Bind(job).Step());
  if (!row) {
    return absl::NotFoundError(absl::StrCat("journal ", database_->path(), " has no job ", job));
  }
  const uint32_t found = EntryChecksum(job, static_cast<uint64_t>(query.Integer(0)), query.Real(1),
                                       query.Text(2), query.Text(3));
  if (query.Integer(4) == found) return query.Text(2);
  return absl::DataLossError(
      absl::StrCat("journal ", database_->path(), ": the spec of job ", job,
                   " has another checksum than it was written with; restore the journal from a "
                   "backup"));
}

absl::Status Journal::AddJob(const JournalJob& job) {
  return InTransaction([&]() -> absl::Status {
    ASSIGN_OR_RETURN(
        Statement insert,
        Statement::Prepare(*database_, "INSERT INTO jobs VALUES (?, ?, ?, ?, ?, ?, ?, ?)"));
    RETURN_IF_ERROR(insert.Bind(job.id)
                        .Bind(static_cast<int64_t>(job.sequence))
                        .Bind(job.submitted_unix_seconds)
                        .Bind(job.spec)
                        .Bind(job.state)
                        .Bind(job.owner)
                        .Bind(static_cast<int64_t>(EntryChecksumOf(job)))
                        .Bind(static_cast<int64_t>(TextChecksum(job.id, job.state)))
                        .Run());
    ASSIGN_OR_RETURN(Statement known,
                     Statement::Prepare(*database_, "DELETE FROM forgotten WHERE job = ?"));
    return known.Bind(job.id).Run();
  });
}

absl::StatusOr<std::string> Journal::Place() {
  ASSIGN_OR_RETURN(Statement query, Statement::Prepare(*database_, "SELECT folder FROM place"));
  ASSIGN_OR_RETURN(const bool row, query.Step());
  return row ? query.Text(0) : "";
}

absl::Status Journal::SetPlace(const std::string& folder) {
  ASSIGN_OR_RETURN(Statement insert,
                   Statement::Prepare(*database_, "REPLACE INTO place VALUES (0, ?)"));
  return insert.Bind(folder).Run();
}

absl::StatusOr<bool> Journal::Forgot(const std::string& job) {
  ASSIGN_OR_RETURN(Statement query,
                   Statement::Prepare(*database_, "SELECT 1 FROM forgotten WHERE job = ?"));
  return query.Bind(job).Step();
}

absl::Status Journal::BeginRemoval(const std::string& job) {
  ASSIGN_OR_RETURN(Statement insert,
                   Statement::Prepare(*database_, "INSERT OR IGNORE INTO removals VALUES (?)"));
  return insert.Bind(job).Run();
}

absl::StatusOr<std::vector<std::string>> Journal::Removals() {
  ASSIGN_OR_RETURN(Statement query,
                   Statement::Prepare(*database_, "SELECT job FROM removals ORDER BY job"));
  std::vector<std::string> jobs;
  while (true) {
    ASSIGN_OR_RETURN(const bool row, query.Step());
    if (!row) return jobs;
    jobs.push_back(query.Text(0));
  }
}

absl::Status Journal::InTransaction(const std::function<absl::Status()>& work) {
  RETURN_IF_ERROR(database_->Execute("BEGIN"));
  absl::Status status = work();
  if (status.ok()) status = database_->Execute("COMMIT");
  if (!status.ok()) database_->Execute("ROLLBACK").IgnoreError();
  return status;
}

absl::Status Journal::SetSpec(const std::string& job, const std::string& spec) {
  return InTransaction([&]() -> absl::Status {
    ASSIGN_OR_RETURN(
        Statement query,
        Statement::Prepare(*database_, "SELECT sequence, submitted, owner FROM jobs WHERE id = ?"));
    ASSIGN_OR_RETURN(const bool row, query.Bind(job).Step());
    if (!row) return absl::OkStatus();
    const uint32_t checksum = EntryChecksum(job, static_cast<uint64_t>(query.Integer(0)),
                                            query.Real(1), spec, query.Text(2));
    ASSIGN_OR_RETURN(
        Statement update,
        Statement::Prepare(*database_, "UPDATE jobs SET spec = ?, entry_crc = ? WHERE id = ?"));
    return update.Bind(spec).Bind(static_cast<int64_t>(checksum)).Bind(job).Run();
  });
}

absl::Status Journal::Write(std::span<const JournalUpdate> updates) {
  return InTransaction([&] { return WriteAll(updates); });
}

absl::Status Journal::WriteAll(std::span<const JournalUpdate> updates) {
  ASSIGN_OR_RETURN(
      Statement update,
      Statement::Prepare(*database_, "UPDATE jobs SET state = ?, state_crc = ? WHERE id = ?"));
  ASSIGN_OR_RETURN(
      Statement insert,
      Statement::Prepare(*database_,
                         absl::StrCat("INSERT INTO records (job, ", kRecordColumns,
                                      ") VALUES "
                                      "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, "
                                      "?)")));
  for (const JournalUpdate& job : updates) {
    RETURN_IF_ERROR(update.Bind(job.state)
                        .Bind(static_cast<int64_t>(TextChecksum(job.job, job.state)))
                        .Bind(job.job)
                        .Run());
    for (const JobRecord& record : job.records) {
      BindRecord(insert, job.job, record);
      RETURN_IF_ERROR(insert.Run());
    }
    RETURN_IF_ERROR(WriteShown(*database_, job, "pictures", job.shown.pictures));
    RETURN_IF_ERROR(WriteShown(*database_, job, "answers", job.shown.answers));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<JobRecord>> Journal::Records(const std::string& job, uint64_t after,
                                                        int limit) {
  ASSIGN_OR_RETURN(
      Statement query,
      Statement::Prepare(
          *database_,
          absl::StrCat("SELECT ", kRecordColumns,
                       " FROM records WHERE job = ? AND number > ? ORDER BY number LIMIT ?")));
  query.Bind(job).Bind(static_cast<int64_t>(after)).Bind(static_cast<int64_t>(limit));
  std::vector<JobRecord> records;
  for (size_t bytes = 0; bytes < kPageTextBytes;) {
    const absl::StatusOr<bool> row = query.Step();
    if (!row.ok() && records.empty()) return row.status();
    if (!row.ok() || !*row) return records;
    absl::StatusOr<JobRecord> record = ReadRecord(job, query);
    if (!record.ok()) {
      if (!records.empty()) return records;  // the next call tells
      return absl::DataLossError(
          absl::StrCat("journal ", database_->path(), ": ", std::string(record.status().message()),
                       "; start the version that wrote it, or restore the file from a backup"));
    }
    bytes += TextBytes(*record);
    records.push_back(*std::move(record));
  }
  return records;
}

absl::StatusOr<ShownTexts> Journal::Shown(const std::string& job) {
  ASSIGN_OR_RETURN(
      Statement query,
      Statement::Prepare(
          *database_,
          "SELECT pictures, answers, pictures_crc, answers_crc FROM shown WHERE job = ?"));
  query.Bind(job);
  ASSIGN_OR_RETURN(const bool row, query.Step());
  ShownTexts shown;
  if (!row) return shown;
  // Nothing to show is better than something else; a text that was never written is empty.
  if (query.Integer(2) == TextChecksum(job, query.Text(0))) shown.pictures = query.Text(0);
  if (query.Integer(3) == TextChecksum(job, query.Text(1))) shown.answers = query.Text(1);
  return shown;
}

absl::StatusOr<uint64_t> Journal::LastNumber(const std::string& job) {
  ASSIGN_OR_RETURN(
      Statement query,
      Statement::Prepare(*database_, "SELECT COALESCE(MAX(number), 0) FROM records WHERE job = ?"));
  query.Bind(job);
  ASSIGN_OR_RETURN(const bool row, query.Step());
  return row ? static_cast<uint64_t>(query.Integer(0)) : 0;
}

absl::Status Journal::Thin(const std::string& job, int64_t most) {
  ASSIGN_OR_RETURN(Statement count,
                   Statement::Prepare(*database_, "SELECT COUNT(*) FROM records WHERE job = ?"));
  count.Bind(job);
  ASSIGN_OR_RETURN(const bool row, count.Step());
  if (!row || count.Integer(0) <= most) return absl::OkStatus();
  const int64_t older_half = count.Integer(0) / 2;
  ASSIGN_OR_RETURN(
      Statement thin,
      Statement::Prepare(*database_,
                         "DELETE FROM records WHERE job = ?1 AND kind = ?2 AND number IN ("
                         "SELECT number FROM (SELECT number, ROW_NUMBER() OVER (ORDER BY number) "
                         "AS place FROM records WHERE job = ?1 ORDER BY number LIMIT ?3) "
                         "WHERE place % 2 = 0)"));
  thin.Bind(job).Bind(static_cast<int64_t>(JobRecord::Kind::kStep)).Bind(older_half);
  return thin.Run();
}

absl::StatusOr<int> Journal::Purge(std::span<const std::string> jobs, int64_t rows) {
  int gone = 0;
  RETURN_IF_ERROR(InTransaction([&]() -> absl::Status {
    ASSIGN_OR_RETURN(gone, PurgeAll(jobs, rows));
    return absl::OkStatus();
  }));
  return gone;
}

// A job's own row goes last: what is left of it when the process ends is found again by the next
// one.
absl::StatusOr<int> Journal::PurgeAll(std::span<const std::string> jobs, int64_t rows) {
  ASSIGN_OR_RETURN(
      Statement records,
      Statement::Prepare(*database_,
                         "DELETE FROM records WHERE job = ?1 AND number IN (SELECT "
                         "number FROM records WHERE job = ?1 ORDER BY number LIMIT ?2)"));
  ASSIGN_OR_RETURN(Statement shown,
                   Statement::Prepare(*database_, "DELETE FROM shown WHERE job = ?"));
  ASSIGN_OR_RETURN(Statement forget,
                   Statement::Prepare(*database_, "INSERT OR IGNORE INTO forgotten VALUES (?)"));
  ASSIGN_OR_RETURN(Statement removal,
                   Statement::Prepare(*database_, "DELETE FROM removals WHERE job = ?"));
  ASSIGN_OR_RETURN(Statement own, Statement::Prepare(*database_, "DELETE FROM jobs WHERE id = ?"));
  int gone = 0;
  for (const std::string& job : jobs) {
    RETURN_IF_ERROR(records.Bind(job).Bind(rows).Run());
    rows -= database_->changed_rows();
    if (rows <= 0) break;
    RETURN_IF_ERROR(shown.Bind(job).Run());
    RETURN_IF_ERROR(forget.Bind(job).Run());
    RETURN_IF_ERROR(removal.Bind(job).Run());
    RETURN_IF_ERROR(own.Bind(job).Run());
    rows -= 4;
    ++gone;
    if (rows <= 0) break;
  }
  return gone;
}

}  // namespace stagecoach
