// DigestCache: digests of large files that were read before, so that submitting them again does not
// read them again. A file counts as the same by path, size, times and inode. The times are the
// kernel's: whoever writes a file cannot set the one of its last change.
// Ownership: owns its entries; the file on disk is shared by all commands, the last one to save wins.
// Threads:   thread-safe.
// Errors:    none: what cannot be read or written is no cache.
#ifndef STAGECOACH_SERVICES_CLI_DATA_DIGEST_CACHE_H_
#define STAGECOACH_SERVICES_CLI_DATA_DIGEST_CACHE_H_

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "services/cli/data/file_set.h"

namespace stagecoach {

class DigestCache {
 public:
  static constexpr size_t kMostFiles = 10000;
  // A file may be written again within one tick of the clock that stamps it.
  static constexpr int64_t kYoungNanos = 2'000'000'000;

  // "$XDG_CACHE_HOME/stagecoach/digests"; empty: no home is known.
  static std::string Path();

  // Reads the file; "": keeps nothing.
  explicit DigestCache(std::string path);

  std::optional<std::string> Find(const LocalFile& file) const;
  // The file was read from this time on. A file that was changed just before is not kept.
  void Keep(const LocalFile& file, const std::string& sha256, int64_t read_unix_nanos);
  void Forget(const LocalFile& file);
  void Save();

 private:
  struct Entry {
    FileStamp stamp;
    std::string sha256;
    uint64_t used = 0;  // rises with each use
  };
  void Read();

  const std::string path_;
  mutable std::mutex mutex_;              // guards what follows
  std::map<std::string, Entry> entries_;  // by path on this machine
  uint64_t uses_ = 0;
  bool changed_ = false;
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_DATA_DIGEST_CACHE_H_
