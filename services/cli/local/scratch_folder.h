// ScratchFolder: a folder among the temporary ones, gone with the object and with all in it.
// Threads: thread-compatible.
// Errors:  of mkdtemp, with the path.
#ifndef STAGECOACH_SERVICES_CLI_LOCAL_SCRATCH_FOLDER_H_
#define STAGECOACH_SERVICES_CLI_LOCAL_SCRATCH_FOLDER_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"

namespace stagecoach {

class ScratchFolder {
 public:
  // "/tmp/stagecoach-PURPOSE-x7Yq2c".
  static absl::StatusOr<std::unique_ptr<ScratchFolder>> Make(const std::string& purpose);
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::string& path() const { return path_; }
  void Keep() { kept_ = true; }  // leaves it behind

 private:
  explicit ScratchFolder(std::string path) : path_(std::move(path)) {}

  const std::string path_;
  bool kept_ = false;
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_LOCAL_SCRATCH_FOLDER_H_
