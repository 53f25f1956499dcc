// PartFile: a part of a data set in a stage's cache (docs/formats.md, "Cached data sets"): a sparse
// file, and beside it an index that tells which blocks of it are here. Stages of a machine share
// them. Two of them may store the same block: they write the same bytes. Nothing is synced, so a
// block counts only if its CRC-32C is the one of the index.
// Ownership: owns its descriptors. While it lives no eviction of any process takes the files.
// Threads:   thread-safe.
// Units:     blocks of kCacheBlockBytes; the last one may be shorter.
// Errors:    of the system, naming --cache-dir and the file. RESOURCE_EXHAUSTED: the disk is full.
#ifndef STAGECOACH_SERVICES_COMMON_DATA_SETS_PART_FILE_H_
#define STAGECOACH_SERVICES_COMMON_DATA_SETS_PART_FILE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "base/files/file_handle.h"

namespace stagecoach {

inline constexpr int64_t kCacheBlockBytes = int64_t{256} << 10;
inline constexpr char kPartIndexEnding[] = ".index";
inline constexpr char kCacheRemedy[] =
    "; give the stage a folder of its own with room for data sets";

struct PartKey {
  std::string sha256;  // 64 hexadecimal digits
  int64_t bytes = 0;
  bool linked = false;  // an object outside the store: sha256 is not of its bytes
  // The id of the set, if nobody compared the digest: another set's part is another file then. Else
  // whoever names the digest of a file would read it out of the cache, or write in its place.
  std::string set = {};
  // A part whose size somebody misstates is another file.
  std::string FileName() const;
};

class PartFile {
 public:
  // Makes the files if they are not there.
  static absl::StatusOr<std::unique_ptr<PartFile>> Open(const std::string& folder,
                                                        const PartKey& key);

  const PartKey& key() const { return key_; }
  int64_t blocks() const { return (key_.bytes + kCacheBlockBytes - 1) / kCacheBlockBytes; }
  int64_t BlockBytes(int64_t block) const;
  bool Has(int64_t block) const;     // by the index alone
  bool IsGood(int64_t block) const;  // and its bytes are those that were stored
  absl::Status Read(int64_t offset, std::span<std::byte> into) const;
  // Whole blocks from `first` on.
  absl::Status Store(int64_t first, std::span<const std::byte> bytes);

  // Its SHA-256 was found right, and no block was stored since.
  bool checked() const;
  void SetChecked();

  void Touch();       // it was used now
  void Drop() const;  // removes the files; what is open stays readable
  absl::StatusOr<FileHandle> Descriptor() const;

 private:
  PartFile(std::string path, PartKey key) : path_(std::move(path)), key_(std::move(key)) {}
  absl::Status OpenFiles();
  absl::Status Failed(int error, const std::string& what) const;

  const std::string path_;
  const PartKey key_;
  FileHandle data_, index_;
};

// Removes the files of a part that nobody has open. False: somebody has, or they cannot be removed.
bool EvictPart(const std::string& folder, const std::string& file_name);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_DATA_SETS_PART_FILE_H_
