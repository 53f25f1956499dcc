// What SQLite does not say: it reads its write-ahead log up to the first frame whose checksum does not fit, takes what
// stands there for a transaction that a crash cut off, and goes on without all that follows. After a crash that is right.
// Of a log that was damaged later it forgets committed transactions in silence: here, jobs.
// Source: SQLite's file format, section 4, "The Write-Ahead Log".
#ifndef STAGECOACH_COORDINATOR_JOURNAL_WAL_CHECK_H_
#define STAGECOACH_COORDINATOR_JOURNAL_WAL_CHECK_H_

#include <string>

#include "absl/status/status.h"

namespace stagecoach {

// Of the log beside the database, before anything opens it. DATA_LOSS if behind the first frame that does not fit there
// is a whole later transaction: each is on disk before the next one begins, so no crash leaves that. Damage to the last
// transaction, or to the commit of the one before it, looks like a crash and is not found. UNAVAILABLE: the log cannot be
// read. No log: ok.
absl::Status CheckWriteAheadLog(const std::string& database_path);

}  // namespace stagecoach

#endif  // STAGECOACH_COORDINATOR_JOURNAL_WAL_CHECK_H_
