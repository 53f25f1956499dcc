// DataFile reading: a file of a data set, in pieces, with a tick of progress after each. It is read
// and not mapped: a file that shrinks while it is mapped would kill the process. Of a data set that
// the cluster keeps, a read waits for its bytes (stage/files/data_sets.h).
// Ownership: owns its descriptor.  Threads: thread-compatible.
// Errors:    all name field, path and remedy. Open: as stage/files/data_roots.h. Read: UNAVAILABLE;
//            DATA_LOSS if it ends before the size that it had; as data_sets.h.
#ifndef STAGECOACH_STAGE_DATA_FORMATS_DATA_FILE_H_
#define STAGECOACH_STAGE_DATA_FORMATS_DATA_FILE_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "stage/files/data_roots.h"

namespace stagecoach {

class OpenedFile {
 public:
  // field: "data.text.path".
  static absl::StatusOr<std::unique_ptr<OpenedFile>> Open(const DataRoots& roots,
                                                          const std::string& field,
                                                          const std::string& path);
  // The same for a file of a folder: it opens `real`; `path` is for errors.
  static absl::StatusOr<std::unique_ptr<OpenedFile>> OpenAs(const DataRoots& roots,
                                                            const std::string& field,
                                                            const std::string& path,
                                                            const std::string& real);

  int64_t size() const { return size_; }  // when it was opened
  int64_t left() const { return size_ - read_; }
  // Reads the next bytes: fills `into`, or reads as many as are left.
  absl::StatusOr<size_t> Read(std::span<uint8_t> into);
  // SHA-256 of all its bytes, in hexadecimal; before any Read. Reads nothing if the data set knows.
  absl::StatusOr<std::string> Digest();
  // The name of the file of this digest in a cache that several jobs share.
  std::string CacheKey(const std::string& digest) const;
  // Fills `into` from `offset` on, independently of Read. Any thread; no tick.
  absl::Status ReadAt(int64_t offset, std::span<uint8_t> into) const;
  // "WebP, not a tar file", with a remedy (base/files/file_kind.h); empty if the kind is unknown.
  std::string OtherKind(absl::string_view wanted) const;
  // FAILED_PRECONDITION if the file was written to since it was opened. Then Read may give other
  // bytes than those of the digest. Any thread.
  absl::Status CheckUnchanged() const;
  // The path of the opened file, links followed.
  const std::string& real_path() const { return opened_.real; }
  // "data.text.path = "/a/b"": errors about its content begin with it.
  std::string Where() const;
  std::string name() const;  // "b" of it, as people are shown it

 private:
  OpenedFile(std::string field, std::string path, DataRoots::Opened opened);
  absl::Status Failed(int error) const;
  // Fills `into`; `shorter` says so if the file ends before.
  absl::Status Fill(int64_t offset, std::span<uint8_t> into, const char* shorter) const;

  const std::string field_, path_;
  const DataRoots::Opened opened_;
  const int64_t size_;
  int64_t read_ = 0;
  int64_t changed_nanos_ = 0;  // time of the last change, by the file system's clock
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_DATA_FORMATS_DATA_FILE_H_
