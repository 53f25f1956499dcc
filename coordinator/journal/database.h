// Database and Statement: SQLite with owning handles and absl::Status. No query builder: the SQL is
// text.
// Ownership: a Statement borrows its Database.
// Threads:   thread-compatible (the job loop's).
// Errors:    RESOURCE_EXHAUSTED (disk full), DATA_LOSS (corrupt, I/O error), UNAVAILABLE (locked by
//            someone else, cannot open), INTERNAL otherwise. Each has the file, SQLite's text and
//            the remedy.
#ifndef STAGECOACH_COORDINATOR_JOURNAL_DATABASE_H_
#define STAGECOACH_COORDINATOR_JOURNAL_DATABASE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"

struct sqlite3;
struct sqlite3_stmt;

namespace stagecoach {

class Database {
 public:
  // Write-ahead log, synchronous=FULL: a committed transaction survives a power cut. DATA_LOSS: the
  // log is damaged (wal_check.h).
  static absl::StatusOr<std::unique_ptr<Database>> Open(const std::string& path);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;
  absl::Status Execute(const std::string& sql);
  int64_t changed_rows() const;  // by the last statement that ran
  sqlite3* handle() { return handle_; }
  const std::string& path() const { return path_; }
  absl::Status Error(const std::string& what) const;  // of the last call, which `what` names

 private:
  Database(std::string path, sqlite3* handle) : path_(std::move(path)), handle_(handle) {}
  const std::string path_;
  sqlite3* const handle_;
};

class Statement {
 public:
  static absl::StatusOr<Statement> Prepare(Database& database, const std::string& sql);
  Statement(Statement&& other) noexcept;
  Statement& operator=(Statement&&) = delete;
  ~Statement();

  // Parameters and columns count from 0, in order.
  Statement& Bind(const std::string& text);
  Statement& Bind(int64_t value);
  Statement& Bind(double value);  // NaN is stored as NULL and read back as NaN
  absl::StatusOr<bool> Step();    // true: a row is there
  absl::Status Run();             // Step to the end, then Reset
  void Reset();
  std::string Text(int column) const;
  int64_t Integer(int column) const;
  double Real(int column) const;

 private:
  Statement(Database* database, sqlite3_stmt* handle) : database_(database), handle_(handle) {}
  Database* database_;
  sqlite3_stmt* handle_;
  int bound_ = 0;
};

}  // namespace stagecoach

#endif  // STAGECOACH_COORDINATOR_JOURNAL_DATABASE_H_
