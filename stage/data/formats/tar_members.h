// TarMembers: the files and links of a tar file, one after the other, by their headers alone.
// Formats: POSIX ustar with long names and sizes of pax and GNU tar, and tar's of Unix 7. Folders,
// devices and the like are left out. tests/oracle/readers/tar_files.py compares with Python's
// tarfile.
// libarchive would accept a file that is cut off behind a member. It also ignores names and sizes
// for all members.
// Ownership: borrows the opened file.
// Threads:   thread-compatible.
// Errors:    DATA_LOSS with file and offset: an invalid header, or a file that is cut off before
//            the end. Earlier members stay valid. INVALID_ARGUMENT: impossible names or sizes, a
//            sparse file, a name or a size for all members.
#ifndef STAGECOACH_STAGE_DATA_FORMATS_TAR_MEMBERS_H_
#define STAGECOACH_STAGE_DATA_FORMATS_TAR_MEMBERS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "stage/data/formats/data_file.h"

namespace stagecoach {

struct TarMember {
  std::string name;
  int64_t offset = 0;  // where its content begins
  int64_t bytes = 0;
  bool link = false;  // a hard or symbolic link, without content
};

class TarMembers {
 public:
  explicit TarMembers(const OpenedFile* file) : file_(file) {}
  // Nothing: the end, which a block of zeros marks. Do not call Next after that or an error.
  absl::StatusOr<std::optional<TarMember>> Next();
  // Offset of the next header, or of the last one.
  int64_t offset() const { return offset_; }

 private:
  absl::Status CutOff(const std::string& what) const;
  // `error`; if the file begins without a header, the kind of the file instead.
  absl::Status NoHeader(const absl::Status& error) const;
  absl::Status Sparse() const;
  absl::Status ForAll(const std::string& key) const;
  absl::Status Damaged() const;
  absl::Status ReadExtension(char type, int64_t bytes);
  // global: `text` is for all members that follow.
  absl::Status ReadPax(const std::string& text, bool global);

  const OpenedFile* const file_;
  int64_t offset_ = 0;
  // Name and size of the next member, from headers before it; the first such header counts.
  std::string long_name_;
  std::optional<int64_t> long_size_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_DATA_FORMATS_TAR_MEMBERS_H_
