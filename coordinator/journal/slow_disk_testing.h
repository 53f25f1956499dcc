// SlowDisk: a disk for SQLite whose syncs do something else first, and that may be full, for tests: it
// lies under every database that is opened while it lives.
// Ownership: must outlive the databases opened on it.
// Threads:   on_sync is called on the thread that writes the database.
#ifndef STAGECOACH_COORDINATOR_JOURNAL_SLOW_DISK_TESTING_H_
#define STAGECOACH_COORDINATOR_JOURNAL_SLOW_DISK_TESTING_H_

#include <sqlite3.h>

#include <functional>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace stagecoach {

class SlowDisk {
 public:
  SlowDisk() : real_(sqlite3_vfs_find(nullptr)), vfs_(*real_) {
    CHECK(active_ == nullptr) << "one slow disk at a time";
    active_ = this;
    name_ = absl::StrCat("slow-", real_->zName);
    vfs_.zName = name_.c_str();
    vfs_.xOpen = Open;
    CHECK(sqlite3_vfs_register(&vfs_, 1) == SQLITE_OK) << "the disk is taken for the default one";
  }
  ~SlowDisk() {
    sqlite3_vfs_unregister(&vfs_);
    active_ = nullptr;
  }
  SlowDisk(const SlowDisk&) = delete;
  SlowDisk& operator=(const SlowDisk&) = delete;

  std::function<void()> on_sync = [] {};
  bool full = false;  // nothing more can be written

 private:
  // The file is opened as ever; only its table of methods is exchanged for a copy with our own xSync and
  // xWrite.
  static int Open(sqlite3_vfs*, const char* path, sqlite3_file* file, int flags, int* out_flags) {
    const int code = active_->real_->xOpen(active_->real_, path, file, flags, out_flags);
    if (code != SQLITE_OK || file->pMethods == nullptr) return code;
    Methods& methods = active_->methods_[file->pMethods];
    methods.real = file->pMethods;
    methods.ours = *file->pMethods;
    methods.ours.xSync = Sync;
    methods.ours.xWrite = Write;
    file->pMethods = &methods.ours;
    return code;
  }
  static int Sync(sqlite3_file* file, int flags) {
    active_->on_sync();
    const sqlite3_io_methods* const real = Real(file);
    return real == nullptr ? SQLITE_IOERR : real->xSync(file, flags);
  }
  static int Write(sqlite3_file* file, const void* bytes, int amount, sqlite3_int64 offset) {
    if (active_->full) return SQLITE_FULL;
    const sqlite3_io_methods* const real = Real(file);
    return real == nullptr ? SQLITE_IOERR : real->xWrite(file, bytes, amount, offset);
  }
  static const sqlite3_io_methods* Real(const sqlite3_file* file) {
    for (const auto& [real, methods] : active_->methods_) {
      if (file->pMethods == &methods.ours) return real;
    }
    return nullptr;
  }

  struct Methods {
    const sqlite3_io_methods* real = nullptr;
    sqlite3_io_methods ours = {};
  };
  static inline SlowDisk* active_ = nullptr;  // SQLite's callbacks carry no pointer of ours
  sqlite3_vfs* const real_;
  sqlite3_vfs vfs_;
  std::string name_;
  std::map<const sqlite3_io_methods*, Methods> methods_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_COORDINATOR_JOURNAL_SLOW_DISK_TESTING_H_
