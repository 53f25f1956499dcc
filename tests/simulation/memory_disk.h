// MemoryDisk: SQLite's files in memory, with the faults of a disk: it fills up, fails, takes its time, and loses power, when
// all that was not synced is gone. It is under every database that is opened while it lives.
// Ownership: must outlive the databases opened on it. One at a time, and no other double of a disk beside it.
// Threads:   one.
// Not here:  locks between processes (there is one), and the log's shared index, which lies in memory anyway and is made
//            anew after a crash.
#ifndef STAGECOACH_TESTS_SIMULATION_MEMORY_DISK_H_
#define STAGECOACH_TESTS_SIMULATION_MEMORY_DISK_H_

#include <sqlite3.h>

#include <cstdint>
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

  // What writes, truncations and syncs answer; frozen: nothing changes any more, as when the process has died;
  // forgets: syncs answer, and are none.
  enum class State { kGood, kFull, kFails, kFrozen, kForgets };
  void Set(State state) { state_ = state; }
  State state() const { return state_; }
  void CutPower();  // no database may be open
  uint64_t syncs() const { return syncs_; }
  // The databases and their logs as they are now, to be put back when none is open.
  using Copy = std::map<std::string, std::string>;
  Copy Files() const;
  void Restore(const Copy& copy);

 private:
  struct Change {  // since the last sync: what was there before
    int64_t offset = 0, size_before = 0;
    std::string before;
  };
  struct Node {
    std::string bytes;
    std::vector<Change> changes;
    std::vector<std::unique_ptr<std::string>> index;  // of the log: SQLite's shared memory
    void Remember(int64_t offset, int64_t length);
  };
  struct File {  // as SQLite allocates it
    sqlite3_file base;
    Node* node;
    bool is_temporary;
  };

  bool Broken() const { return state_ == State::kFails || state_ == State::kFrozen; }
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
  static int MapIndex(sqlite3_file* file, int page, int page_size, int extend, void volatile** at);
  static int UnmapIndex(sqlite3_file* file, int remove);
  static sqlite3_io_methods MakeMethods();
  static Node& Of(sqlite3_file* file) { return *reinterpret_cast<File*>(file)->node; }

  static inline MemoryDisk* active_ = nullptr;  // SQLite's callbacks carry no pointer of ours
  sqlite3_vfs vfs_;
  std::map<std::string, std::unique_ptr<Node>> nodes_;  // by path
  State state_ = State::kGood;
  uint64_t syncs_ = 0;
};

}  // namespace stagecoach

#endif  // STAGECOACH_TESTS_SIMULATION_MEMORY_DISK_H_
