// LocalParts: a set of files as the parts that travel, with the manifest that names them. Files of
// 1 MiB and more are parts of their own. Smaller ones are packed, in the order of their paths, into
// parts of at most 64 MiB. So the same files make the same parts and manifest with every client.
// Ownership: owns manifest and entries.
// Threads:   MakeParts reads with two threads, and calls `on_read` on the caller's; PartReader is
//            thread-compatible.
// Units:     bytes.
// Errors:    INVALID_ARGUMENT: there is no file, or what CheckedManifest refuses. FAILED_PRECONDITION
//            naming the file: it was changed meanwhile. CANCELLED: `on_read` said so. Those of the
//            system name the file.
// See:       proto/stagecoach/v1/data_sets.proto.
#ifndef STAGECOACH_SERVICES_CLI_DATA_LOCAL_PARTS_H_
#define STAGECOACH_SERVICES_CLI_DATA_LOCAL_PARTS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/files/file_handle.h"
#include "services/cli/data/digest_cache.h"
#include "services/cli/data/file_set.h"
#include "stagecoach/v1/data_sets.pb.h"

namespace stagecoach {

inline constexpr int64_t kOwnPartBytes = 1 << 20;    // a file of so many is a part
inline constexpr int64_t kMostPackBytes = 64 << 20;  // of small files

struct LocalPart {
  std::vector<const LocalFile*> files;  // behind each other; of the FileSet
  int64_t bytes = 0;
  std::string sha256;
};

struct LocalParts {
  std::vector<LocalPart> parts;  // as in the manifest
  std::string manifest;          // its bytes
  std::string manifest_sha256;
  int64_t files = 0, bytes = 0;  // of all files
};

// Bytes that were read so far, of all; false ends the reading.
using OnRead = std::function<bool(int64_t done, int64_t total)>;

// Reads all files once, without those whose digests the cache has. set: sorted; it outlives the parts.
// cache: null: none.
absl::StatusOr<LocalParts> MakeParts(const FileSet& set, const OnRead& on_read,
                                     DigestCache* cache = nullptr);

// Reads a part's bytes in order, from a place on.
class PartReader {
 public:
  PartReader(const LocalPart& part, int64_t offset);
  // Fills the target, which must not go beyond the part's end.
  absl::Status Read(std::span<std::byte> target);

 private:
  absl::Status OpenNext();
  absl::Status CheckUnchanged();

  const LocalPart& part_;
  size_t next_ = 0;  // file to open
  const LocalFile* file_ = nullptr;
  FileHandle handle_;
  int64_t at_ = 0, left_ = 0;  // in the open file
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_DATA_LOCAL_PARTS_H_
