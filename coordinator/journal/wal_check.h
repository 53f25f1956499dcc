// Checks SQLite's write-ahead log for damage that SQLite does not report. SQLite reads the log up
// to the first frame whose checksum does not fit. It takes that frame for part of a transaction
// that a crash cut off, and drops all that follows. After a crash that is right. If the log was
// damaged later, SQLite forgets committed transactions in silence: here, jobs.
// Source: SQLite's file format, section 4, "The Write-Ahead Log".
#ifndef STAGECOACH_COORDINATOR_JOURNAL_WAL_CHECK_H_
#define STAGECOACH_COORDINATOR_JOURNAL_WAL_CHECK_H_

#include <string>

#include "absl/status/status.h"

namespace stagecoach {

// Checks the log beside the database, before anything opens it. DATA_LOSS: a whole later
// transaction lies behind the first frame that does not fit. No crash leaves that, because each
// transaction is on disk before the next one begins. Damage to the last transaction, or to the
// commit of the one before it, looks like a crash and is not found. UNAVAILABLE: the log cannot be
// read. No log: OK.
absl::Status CheckWriteAheadLog(const std::string& database_path);

}  // namespace stagecoach

#endif  // STAGECOACH_COORDINATOR_JOURNAL_WAL_CHECK_H_
