// MemoryDisk: SQLite's files in memory, with the faults of a disk: it fills up, fails, is slow, and
// loses power with all that was not synced. A fault comes at once, or at the n-th call that changes
// something. Every database that is opened while the disk lives is on it.
// Ownership: must outlive the databases opened on it. One at a time.
// Threads:   one.
// Not here:  locks, but for those that tell a connection whether it is the last one; the log's
// shared
//            index, which lies in memory anyway and is made anew after a crash.
#ifndef STAGECOACH_COORDINATOR_TESTING_MEMORY_DISK_H_
#define STAGECOACH_COORDINATOR_TESTING_MEMORY_DISK_H_

#include <sqlite3.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace stagecoach {

class MemoryDisk {
 public:
  MemoryDisk();
  ~MemoryDisk();
  MemoryDisk(const MemoryDisk&) = delete;
  MemoryDisk& operator=(const MemoryDisk&) = delete;

  // The answer of writes, truncations and syncs. kFrozen: nothing changes any more, as after the
  // death of the process. kForgets: syncs answer, but sync nothing.
  enum class State { kGood, kFull, kFails, kFrozen, kForgets };
  void Set(State state) { state_ = state; }
  State state() const { return state_; }
  // Unsynced changes are gone, or a part of them is there, as a disk writes in its own order. No
  // database may be open.
  enum class Unsynced { kGone, kInPart };
  void CutPower(Unsynced unsynced = Unsynced::kGone);
  uint64_t syncs() const { return syncs_; }
  std::function<void()> on_sync = [] {};  // at the beginning of each sync

  // From this call on, counted from 1, the disk is in this state. With kGood the call alone answers
  // an I/O error. torn: if it is a write and the disk freezes, half of it is there. Calls are
  // writes, syncs, truncations and removals of files.
  void Inject(int64_t call, State state, bool torn = false);
  int64_t calls() const { return calls_; }

  // The databases and their logs as they are now, to be put back when none is open.
  using Copy = std::map<std::string, std::string>;
  Copy Files() const;
  void Restore(const Copy& copy);
  void Add(const Copy& copy);  // beside those that are there, which may be open

 private:
  struct Change {  // since the last sync: what was there before
    int64_t offset = 0, size_before = 0;
    std::string before, after;  // none after a truncation
  };
  struct Node {
    std::string bytes;
    std::vector<Change> changes;
    std::vector<std::unique_ptr<std::string>> index;  // of the log: SQLite's shared memory
    int connections = 0;  // connections with it open: the last to close it clears up
    void Remember(int64_t offset, int64_t length, std::string after);
    void Put(int64_t offset, const std::string& what);
  };
  struct File {  // as SQLite allocates it
    sqlite3_file base;
    Node* node;
    bool is_temporary;
  };

  bool Broken() const { return state_ == State::kFails || state_ == State::kFrozen; }
  bool FailsNow();  // counts the call
  static int Open(sqlite3_vfs*, const char* path, sqlite3_file* file, int flags, int* out_flags);
  static int Delete(sqlite3_vfs*, const char* path, int sync_folder);
  static int Access(sqlite3_vfs*, const char* path, int flags, int* result);
  static int FullPath(sqlite3_vfs*, const char* path, int size, char* out);
  static int Close(sqlite3_file* file);
  static int Read(sqlite3_file* file, void* bytes, int amount, sqlite3_int64 offset);
  static int Write(sqlite3_file* file, const void* bytes, int amount, sqlite3_int64 offset);
  static int Truncate(sqlite3_file* file, sqlite3_int64 size);
  static int Sync(sqlite3_file* file, int flags);
  static int Size(sqlite3_file* file, sqlite3_int64* size);
  static int Lock(sqlite3_file* file, int level);
  static int MapIndex(sqlite3_file* file, int page, int page_size, int extend, void volatile** at);
  static int UnmapIndex(sqlite3_file* file, int remove);
  static sqlite3_io_methods MakeMethods();
  static Node& Of(sqlite3_file* file) { return *reinterpret_cast<File*>(file)->node; }

  static inline MemoryDisk* active_ = nullptr;  // SQLite's callbacks carry no pointer of ours
  sqlite3_vfs vfs_;
  std::map<std::string, std::unique_ptr<Node>> nodes_;  // by path
  State state_ = State::kGood;
  uint64_t syncs_ = 0;
  int64_t calls_ = 0, fault_call_ = 0;
  State fault_ = State::kGood;
  bool torn_ = false;
};

}  // namespace stagecoach

#endif  // STAGECOACH_COORDINATOR_TESTING_MEMORY_DISK_H_
