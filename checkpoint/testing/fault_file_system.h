// FaultFileSystem: a file system in memory for tests of durability. It fails the n-th call, fills
// up, and loses power: file contents and folder entries that were not synced are then forgotten.
// Ownership: owns all contents; files opened from it must not outlive it.
// Threads:   thread-safe.
// Errors:    as FileSystem says; messages begin with "injected" where a fault was asked for.
// A failing call leaves half of a write, and a folder without its first entry if RemoveAll fails.
// Otherwise it leaves nothing (but see Fault::after_effect). Every function of FileSystem and of
// its files counts as a call, except Exists, size and destructors.
#ifndef STAGECOACH_CHECKPOINT_TESTING_FAULT_FILE_SYSTEM_H_
#define STAGECOACH_CHECKPOINT_TESTING_FAULT_FILE_SYSTEM_H_

#include <condition_variable>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/files/file_system.h"

namespace stagecoach {

class FaultFileSystem final : public FileSystem {
 public:
  struct Fault {
    int64_t call = 1;  // counted from the injection on; 1 is the next call
    absl::StatusCode code = absl::StatusCode::kUnavailable;
    bool from_then_on = false;  // the later calls fail too: the process has died
    bool after_effect = false;  // the call does its work and then answers the error
    // Reads answer UNAVAILABLE instead of DATA_LOSS, as PosixFileSystem does: an unreadable file is
    // not broken yet.
    bool as_posix = false;
  };
  // The unsynced state that a power cut leaves. Real disks do any of these.
  enum class Survivors {
    kSynced,    // nothing else
    kEntries,   // also entries of folders: names without their contents
    kContents,  // also contents of files: bytes without their names
    kLeaves,    // also entries of folders without folders: what was done inside, not the rename
  };

  FaultFileSystem();
  ~FaultFileSystem() override;

  void Inject(const Fault& fault);  // replaces the one before
  void ClearFault();
  int64_t calls() const;  // since construction
  void SetCapacity(int64_t bytes);
  // From now on writes wait, each for at most a minute, until LetWritesGo. Other calls go on.
  void HoldWrites();
  void LetWritesGo();
  void AwaitHeldWrite();  // until one waits, at most for a minute
  void CutPower(Survivors survivors);
  // For tests that damage files: the whole content, synced at once. CHECKs that the file exists.
  std::string Contents(const std::string& path);
  void SetContents(const std::string& path, const std::string& bytes);

  absl::StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) override;
  absl::StatusOr<std::unique_ptr<ReadableFile>> Open(const std::string& path) override;
  absl::Status MakeFolders(const std::string& path) override;
  absl::StatusOr<std::vector<std::string>> List(const std::string& folder) override;
  absl::Status Rename(const std::string& from, const std::string& to) override;
  absl::Status Link(const std::string& from, const std::string& to) override;
  absl::Status SyncFolder(const std::string& folder) override;
  absl::Status RemoveAll(const std::string& path) override;
  absl::Status Look(const std::string& path) override;
  absl::StatusOr<int64_t> FreeBytes(const std::string& folder) override;

 private:
  struct Node;
  class Writer;
  class Reader;
  struct Verdict {
    bool act = true;      // do the effect
    absl::Status answer;  // the answer if it is not ok
  };

  void WaitToWrite(std::unique_lock<std::mutex>* lock);
  Verdict JudgeLocked(const char* operation, const std::string& path);
  std::shared_ptr<Node> FindLocked(const std::string& path) const;  // null if absent
  absl::StatusOr<std::shared_ptr<Node>> ParentLocked(const std::string& path) const;
  int64_t UsedLocked() const;
  absl::Status MakeFoldersLocked(const std::string& path);
  absl::Status RenameLocked(const std::string& from, const std::string& to);
  absl::Status LinkLocked(const std::string& from, const std::string& to);

  mutable std::mutex mutex_;  // guards everything below and all nodes
  std::shared_ptr<Node> root_;
  std::optional<Fault> fault_;
  int64_t calls_ = 0;
  int64_t calls_since_fault_ = 0;
  int64_t capacity_ = std::numeric_limits<int64_t>::max();
  bool holds_writes_ = false;
  int64_t held_writes_ = 0;
  std::condition_variable writes_changed_;
  int64_t power_cuts_ = 0;  // a file from before the last one is dead
};

}  // namespace stagecoach

#endif  // STAGECOACH_CHECKPOINT_TESTING_FAULT_FILE_SYSTEM_H_
