#include "coordinator/journal/database.h"

#include <sqlite3.h>
#include <sys/stat.h>

#include <cmath>
#include <limits>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/errors/status.h"
#include "coordinator/journal/wal_check.h"

namespace stagecoach {
namespace {

absl::StatusCode CodeOf(int sqlite_code) {
  switch (sqlite_code & 0xff) {
    case SQLITE_FULL:
      return absl::StatusCode::kResourceExhausted;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_IOERR:
      return absl::StatusCode::kDataLoss;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
      return absl::StatusCode::kUnavailable;
    default:
      return absl::StatusCode::kInternal;
  }
}

// Enough of a statement to tell which one it was.
std::string FirstWords(std::string_view sql) {
  constexpr size_t kMost = 24;
  while (!sql.empty() && absl::ascii_isspace(static_cast<unsigned char>(sql.front()))) {
    sql.remove_prefix(1);
  }
  return std::string(sql.substr(0, kMost));
}

const char* RemedyFor(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kResourceExhausted:
      return "; make room on its disk";
    case absl::StatusCode::kDataLoss:
      return "; look at its disk; if the file itself is damaged, stop the coordinator and restore "
             "it from a backup, or move it and its -wal and -shm aside to begin with an empty one: "
             "checkpoints stay, and new jobs can resume them";
    case absl::StatusCode::kUnavailable:
      return "; the coordinator must be the only program that writes it, and may write it and its "
             "folder";
    default:
      return "";
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<Database>> Database::Open(const std::string& path) {
  RETURN_IF_ERROR(CheckWriteAheadLog(path));
  sqlite3* handle = nullptr;
  const int code =
      sqlite3_open_v2(path.c_str(), &handle,
                      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, nullptr);
  std::unique_ptr<Database> database(new Database(path, handle));
  if (code != SQLITE_OK) return database->Error("open");
  // It has specs, and the secret of snapshots' keys. What SQLite puts beside it gets the same
  // rights; what was there before is not written again. A file of another user's is as its owner
  // has it.
  for (const char* const beside : {"", "-wal", "-shm"}) {
    static_cast<void>(chmod(absl::StrCat(path, beside).c_str(), S_IRUSR | S_IWUSR));
  }
  RETURN_IF_ERROR(database->Execute("PRAGMA journal_mode=WAL"));
  RETURN_IF_ERROR(database->Execute("PRAGMA synchronous=FULL"));
  return database;
}

Database::~Database() { sqlite3_close_v2(handle_); }

int64_t Database::changed_rows() const { return sqlite3_changes(handle_); }

absl::Status Database::Execute(const std::string& sql) {
  if (sqlite3_exec(handle_, sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK) {
    return absl::OkStatus();
  }
  return Error(FirstWords(sql));
}

absl::Status Database::Error(const std::string& what) const {
  const int code = sqlite3_extended_errcode(handle_);
  const absl::StatusCode status = CodeOf(code);
  return absl::Status(status, absl::StrCat("journal ", path_, ": ", sqlite3_errmsg(handle_), " (",
                                           what, ")", RemedyFor(status)));
}

absl::StatusOr<Statement> Statement::Prepare(Database& database, const std::string& sql) {
  sqlite3_stmt* handle = nullptr;
  if (sqlite3_prepare_v2(database.handle(), sql.c_str(), -1, &handle, nullptr) != SQLITE_OK) {
    return database.Error(FirstWords(sql));
  }
  return Statement(&database, handle);
}

Statement::Statement(Statement&& other) noexcept
    : database_(other.database_),
      handle_(std::exchange(other.handle_, nullptr)),
      bound_(other.bound_) {}

Statement::~Statement() { sqlite3_finalize(handle_); }

Statement& Statement::Bind(const std::string& text) {
  const int code = sqlite3_bind_text(handle_, ++bound_, text.c_str(), static_cast<int>(text.size()),
                                     SQLITE_TRANSIENT);
  CHECK(code == SQLITE_OK) << "parameter " << bound_ << " of " << sqlite3_sql(handle_);
  return *this;
}

Statement& Statement::Bind(int64_t value) {
  const int code = sqlite3_bind_int64(handle_, ++bound_, value);
  CHECK(code == SQLITE_OK) << "parameter " << bound_ << " of " << sqlite3_sql(handle_);
  return *this;
}

Statement& Statement::Bind(double value) {
  const int code = sqlite3_bind_double(handle_, ++bound_, value);
  CHECK(code == SQLITE_OK) << "parameter " << bound_ << " of " << sqlite3_sql(handle_);
  return *this;
}

absl::StatusOr<bool> Statement::Step() {
  const int code = sqlite3_step(handle_);
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  absl::Status status = database_->Error(FirstWords(sqlite3_sql(handle_)));
  Reset();
  return status;
}

absl::Status Statement::Run() {
  while (true) {
    ASSIGN_OR_RETURN(const bool row, Step());
    if (!row) break;
  }
  Reset();
  return absl::OkStatus();
}

void Statement::Reset() {
  sqlite3_reset(handle_);
  bound_ = 0;
}

std::string Statement::Text(int column) const {
  const unsigned char* text = sqlite3_column_text(handle_, column);
  if (text == nullptr) return "";
  return std::string(reinterpret_cast<const char*>(text),
                     static_cast<size_t>(sqlite3_column_bytes(handle_, column)));
}

int64_t Statement::Integer(int column) const { return sqlite3_column_int64(handle_, column); }

double Statement::Real(int column) const {
  if (sqlite3_column_type(handle_, column) == SQLITE_NULL) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  return sqlite3_column_double(handle_, column);
}

}  // namespace stagecoach
