// FileSet: files of this machine that become one data set, each under a path in the set.
// Ownership: owns its entries; files are opened later, by their paths here.
// Threads:   thread-compatible.
// Units:     bytes.
// Errors:    INVALID_ARGUMENT with the path here and why. It is not there, or is no regular file or
//            folder. Its name is none that a set takes (plan/data/data_set_path.h). It is a link or a
//            folder that Add refuses. Other errors of the system: UNAVAILABLE, PERMISSION_DENIED.
#ifndef STAGECOACH_SERVICES_CLI_DATA_FILE_SET_H_
#define STAGECOACH_SERVICES_CLI_DATA_FILE_SET_H_

#include <sys/stat.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace stagecoach {

// What tells that a file is still the one that was looked at.
struct FileStamp {
  int64_t bytes = 0;
  int64_t modified_nanos = 0;
  int64_t changed_nanos = 0;  // by the kernel
  uint64_t inode = 0;
  static FileStamp Of(const struct stat& info);
  friend bool operator==(const FileStamp&, const FileStamp&) = default;
};

struct LocalFile {
  std::string path;  // in the set
  std::string here;  // on this machine
  FileStamp stamp;
};

class FileSet {
 public:
  // Says which files of a folder are taken, by their names; folders always are.
  using Takes = std::function<bool(const std::string& name)>;

  // Adds a file, or a folder with all in it, as `path`; "" is the set's root, for a folder only.
  // In folders, names that begin with a dot are left out and counted. Without `takes`, which is for
  // weights, a folder without a file is refused, and so is a link that is not to a file in `here`.
  absl::Status Add(const std::string& here, const std::string& path, const Takes& takes = {});

  // By path, as bytes. The same file under the same path is there once.
  absl::Status Sort();
  const std::vector<LocalFile>& files() const { return files_; }
  int64_t bytes() const;
  int64_t hidden() const { return hidden_; }

 private:
  class Walk;
  std::vector<LocalFile> files_;
  int64_t hidden_ = 0;
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_DATA_FILE_SET_H_
