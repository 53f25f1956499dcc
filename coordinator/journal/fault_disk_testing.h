// FaultDisk: a disk for SQLite that fails the n-th call which changes something, or ends the process there as a crash or a
// power cut would, for tests of what lasts. It lies under every database that is opened while it lives.
// Ownership: must outlive the databases opened on it. One at a time, and no SlowDisk beside it.
// Threads:   one.
// What counts as a call: writes, syncs, truncations and removals of files; the log's index, which lies in shared memory
//            and is made anew after a crash, does not.
#ifndef STAGECOACH_COORDINATOR_JOURNAL_FAULT_DISK_TESTING_H_
#define STAGECOACH_COORDINATOR_JOURNAL_FAULT_DISK_TESTING_H_

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace stagecoach {

class FaultDisk {
 public:
  enum class Fault {
    kError,      // the call answers an I/O error, the later ones work
    kErrors,     // and so do all later ones
    kFull,       // a write answers that the disk is full; other calls work
    kCrash,      // the process ends; what was written stays
    kPowerCut,   // what was not synced is gone
    kPowerSome,  // of that, any part is there, as a disk writes in an order of its own
    kPowerHalf,  // the write itself is torn, and all before it is there
  };
  static bool Ends(Fault fault) { return fault >= Fault::kCrash; }

  FaultDisk() : real_(sqlite3_vfs_find(nullptr)), vfs_(*real_) {
    CHECK(active_ == nullptr) << "one fault disk at a time";
    active_ = this;
    name_ = absl::StrCat("fault-", real_->zName);
    vfs_.zName = name_.c_str();
    vfs_.xOpen = Open;
    vfs_.xDelete = Delete;
    CHECK(sqlite3_vfs_register(&vfs_, 1) == SQLITE_OK) << "the disk is taken for the default one";
  }
  ~FaultDisk() {
    sqlite3_vfs_unregister(&vfs_);
    active_ = nullptr;
  }
  FaultDisk(const FaultDisk&) = delete;
  FaultDisk& operator=(const FaultDisk&) = delete;

  // At the call of that number, counted from 1 since this disk was made. 0: never.
  void Inject(int64_t call, Fault fault) {
    call_ = call;
    fault_ = fault;
  }
  int64_t calls() const { return calls_; }

 private:
  // A change of a file since its last sync: what is there now at `offset`, and what was.
  struct Change {
    int64_t offset = 0, size_before = 0, size_after = 0;
    std::string before, after;
  };
  struct Methods {
    const sqlite3_io_methods* real = nullptr;
    sqlite3_io_methods ours = {};
  };

  static int Open(sqlite3_vfs*, const char* path, sqlite3_file* file, int flags, int* out_flags) {
    const int code = active_->real_->xOpen(active_->real_, path, file, flags, out_flags);
    if (code != SQLITE_OK || file->pMethods == nullptr || path == nullptr) return code;
    Methods& methods = active_->methods_[file->pMethods];
    methods.real = file->pMethods;
    methods.ours = *file->pMethods;
    methods.ours.xSync = Sync;
    methods.ours.xWrite = Write;
    methods.ours.xTruncate = Truncate;
    file->pMethods = &methods.ours;
    active_->paths_[file] = path;
    return code;
  }

  static int Write(sqlite3_file* file, const void* bytes, int amount, sqlite3_int64 offset) {
    const std::string after(static_cast<const char*>(bytes), static_cast<size_t>(amount));
    if (const int code = active_->Next(file, offset, &after); code != SQLITE_OK) return code;
    active_->Remember(file, offset, after);
    return active_->Real(file)->xWrite(file, bytes, amount, offset);
  }
  static int Sync(sqlite3_file* file, int flags) {
    if (const int code = active_->Next(file, 0, nullptr); code != SQLITE_OK) return code;
    active_->changes_.erase(active_->paths_.at(file));
    return active_->Real(file)->xSync(file, flags);
  }
  static int Truncate(sqlite3_file* file, sqlite3_int64 size) {
    if (const int code = active_->Next(file, 0, nullptr); code != SQLITE_OK) return code;
    Change change;
    change.size_before = Size(active_->paths_.at(file));
    change.offset = change.size_after = size;
    change.before = Read(active_->paths_.at(file), size, change.size_before - size);
    active_->changes_[active_->paths_.at(file)].push_back(change);
    return active_->Real(file)->xTruncate(file, size);
  }
  static int Delete(sqlite3_vfs*, const char* path, int sync_folder) {
    if (const int code = active_->Next(nullptr, 0, nullptr); code != SQLITE_OK) return code;
    active_->changes_.erase(path);
    return active_->real_->xDelete(active_->real_, path, sync_folder);
  }

  // after: what a write would leave; null for other calls.
  int Next(sqlite3_file* file, int64_t offset, const std::string* after) {
    ++calls_;
    if (call_ == 0 || calls_ < call_) return SQLITE_OK;
    if (calls_ > call_ && fault_ != Fault::kErrors && fault_ != Fault::kFull) return SQLITE_OK;
    if (fault_ == Fault::kFull) return after != nullptr ? SQLITE_FULL : SQLITE_OK;
    if (!Ends(fault_)) return SQLITE_IOERR;
    if (fault_ == Fault::kPowerHalf && after != nullptr) {
      const std::string half = after->substr(0, after->size() / 2);
      Put(paths_.at(file), offset, half);
    }
    if (fault_ == Fault::kPowerCut || fault_ == Fault::kPowerSome) LosePower();
    _exit(0);
  }

  void Remember(sqlite3_file* file, int64_t offset, const std::string& after) {
    const std::string& path = paths_.at(file);
    Change change;
    change.offset = offset;
    change.size_before = Size(path);
    change.before = Read(path, offset, static_cast<int64_t>(after.size()));
    change.after = after;
    change.size_after =
        std::max<int64_t>(change.size_before, offset + static_cast<int64_t>(after.size()));
    changes_[path].push_back(std::move(change));
  }

  void LosePower() {
    std::mt19937_64 random(static_cast<uint64_t>(calls_));
    for (const auto& [path, changes] : changes_) {
      for (auto change = changes.rbegin(); change != changes.rend(); ++change) {
        CHECK(truncate(path.c_str(), change->size_before) == 0) << path;
        Put(path, change->offset, change->before);
      }
      if (fault_ == Fault::kPowerCut) continue;
      for (const Change& change : changes) {
        if (random() % 2 == 0) continue;
        if (change.after.empty()) {
          CHECK(truncate(path.c_str(), change.size_after) == 0) << path;
        } else {
          Put(path, change.offset, change.after);
        }
      }
    }
  }

  const sqlite3_io_methods* Real(const sqlite3_file* file) const {
    for (const auto& [real, methods] : methods_) {
      if (file->pMethods == &methods.ours) return real;
    }
    CHECK(false) << "a file of another disk";
    return nullptr;
  }

  static int64_t Size(const std::string& path) {
    struct stat file {};
    return stat(path.c_str(), &file) == 0 ? file.st_size : 0;
  }
  static std::string Read(const std::string& path, int64_t offset, int64_t amount) {
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    std::string bytes(static_cast<size_t>(std::max<int64_t>(0, amount)), '\0');
    const ssize_t got = pread(file, bytes.data(), bytes.size(), offset);
    close(file);
    bytes.resize(static_cast<size_t>(std::max<ssize_t>(0, got)));
    return bytes;
  }
  static void Put(const std::string& path, int64_t offset, const std::string& bytes) {
    const int file = open(path.c_str(), O_WRONLY | O_CLOEXEC);
    CHECK(pwrite(file, bytes.data(), bytes.size(), offset) == static_cast<ssize_t>(bytes.size()))
        << path;
    close(file);
  }

  static inline FaultDisk* active_ = nullptr;  // SQLite's callbacks carry no pointer of ours
  sqlite3_vfs* const real_;
  sqlite3_vfs vfs_;
  std::string name_;
  std::map<const sqlite3_io_methods*, Methods> methods_;
  std::map<const sqlite3_file*, std::string> paths_;
  std::map<std::string, std::vector<Change>> changes_;  // by path
  int64_t calls_ = 0, call_ = 0;
  Fault fault_ = Fault::kError;
};

}  // namespace stagecoach

#endif  // STAGECOACH_COORDINATOR_JOURNAL_FAULT_DISK_TESTING_H_
