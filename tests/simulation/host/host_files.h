// HostFiles: the shared folder of checkpoints as one host sees it: its own way there may fail,
// while the others' works.
// Ownership: borrows the file system.
// Threads:   one.
// Errors:    those of the file system, or the fault's; messages begin with "injected". Files that
//            are open go on working.
#ifndef STAGECOACH_TESTS_SIMULATION_HOST_HOST_FILES_H_
#define STAGECOACH_TESTS_SIMULATION_HOST_HOST_FILES_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/errors/status.h"
#include "checkpoint/files/file_system.h"
#include "tests/simulation/host/seeded_random.h"

namespace stagecoach {

class HostFiles final : public FileSystem {
 public:
  HostFiles(FileSystem* files, SeededRandom* random, uint64_t seed_of_names)
      : files_(files), random_(random), names_(seed_of_names) {}

  // Of all calls this share fails so; 0: none. What reads answers UNAVAILABLE for DATA_LOSS, as
  // PosixFileSystem does: what cannot be read now is not broken yet.
  void Fail(double share, absl::StatusCode code) {
    share_ = share;
    code_ = code;
  }

  // Called before each call.
  void SetBetween(std::function<void()> between) { between_ = std::move(between); }

  absl::StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) override {
    RETURN_IF_ERROR(Try("create", path));
    return files_->Create(path);
  }
  absl::StatusOr<std::unique_ptr<ReadableFile>> Open(const std::string& path) override {
    RETURN_IF_ERROR(Try("open", path, true));
    return files_->Open(path);
  }
  absl::Status MakeFolders(const std::string& path) override {
    RETURN_IF_ERROR(Try("make folder", path));
    return files_->MakeFolders(path);
  }
  absl::StatusOr<std::vector<std::string>> List(const std::string& folder) override {
    RETURN_IF_ERROR(Try("list", folder, true));
    return files_->List(folder);
  }
  absl::Status Rename(const std::string& from, const std::string& to) override {
    RETURN_IF_ERROR(Try("rename", from));
    return files_->Rename(from, to);
  }
  absl::Status SyncFolder(const std::string& folder) override {
    RETURN_IF_ERROR(Try("fsync folder", folder));
    return files_->SyncFolder(folder);
  }
  absl::Status RemoveAll(const std::string& path) override {
    RETURN_IF_ERROR(Try("remove", path));
    return files_->RemoveAll(path);
  }
  absl::Status Look(const std::string& path) override {
    RETURN_IF_ERROR(Try("look at", path, true));
    return files_->Look(path);
  }
  absl::StatusOr<int64_t> FreeBytes(const std::string& folder) override {
    RETURN_IF_ERROR(Try("free bytes of", folder));
    return files_->FreeBytes(folder);
  }
  // Messages name such files, and a bit of a message may be flipped.
  std::string Nonce() override { return absl::StrFormat("%016x", names_.Bits()); }

 private:
  absl::Status Try(const char* operation, const std::string& path, bool reads = false) {
    between_();
    if (share_ == 0 || !random_->Chance(share_)) return absl::OkStatus();
    const bool may_come_back = reads && code_ == absl::StatusCode::kDataLoss;
    return absl::Status(may_come_back ? absl::StatusCode::kUnavailable : code_,
                        absl::StrCat("injected: ", operation, " ", path));
  }

  FileSystem* const files_;
  SeededRandom* const random_;
  SeededRandom names_;  // its own, or they would move every later draw
  std::function<void()> between_ = [] {};
  double share_ = 0;
  absl::StatusCode code_ = absl::StatusCode::kUnavailable;
};

}  // namespace stagecoach

#endif  // STAGECOACH_TESTS_SIMULATION_HOST_HOST_FILES_H_
