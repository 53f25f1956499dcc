// TarMembers: the files and links of a tar file, one after the other, by their headers alone.
// Formats: POSIX ustar with long names and sizes of pax and GNU tar, and tar's of Unix 7. Folders,
// devices and the like are left out. tests/oracle/readers/tar_files.py compares with Python's
// tarfile.
// Not libarchive: it takes a file that is cut off behind a member for whole. It passes over names
// and sizes for all members.
// Ownership: borrows the opened file.
// Threads:   thread-compatible.
// Errors:    DATA_LOSS with file and offset: a header that is none, a member or an end that is
//            missing because the file is cut off. What came before stays true. INVALID_ARGUMENT:
//            names and sizes beyond any sense, a sparse file, a name or a size for all members.
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
  int64_t offset = 0;  // of its content
  int64_t bytes = 0;
  bool link = false;  // to another member or a path, hard or symbolic: without content
};

class TarMembers {
 public:
  explicit TarMembers(const OpenedFile* file) : file_(file) {}
  // Nothing: the end, which a block of zeros marks. Not to be called after that or an error.
  absl::StatusOr<std::optional<TarMember>> Next();
  // Of the header that is next, or was the last one.
  int64_t offset() const { return offset_; }

 private:
  absl::Status CutOff(const std::string& what) const;
  // `error`, or what the file is where it begins with no header.
  absl::Status NoHeader(const absl::Status& error) const;
  absl::Status Sparse() const;
  absl::Status ForAll(const std::string& key) const;
  absl::Status Damaged() const;
  absl::Status ReadExtension(char type, int64_t bytes);
  // global: what it says is meant for all members that follow.
  absl::Status ReadPax(const std::string& text, bool global);

  const OpenedFile* const file_;
  int64_t offset_ = 0;
  // Of the next member, from headers before it, of which the first counts.
  std::string long_name_;
  std::optional<int64_t> long_size_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_DATA_FORMATS_TAR_MEMBERS_H_
