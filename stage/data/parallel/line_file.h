// LineFile: the lines of a text, plain or gzip, one after the other. It keeps one line and a piece
// of the file in memory.
// Ownership: owns its file.  Threads: thread-compatible.
// Units:     lines count from 1.
// Errors:    all name field and path, those of a line its number. Those of data_file.h, and:
//            INVALID_ARGUMENT: the first bytes are not a text's, or a line has more than
//            kMostLineBytes. DATA_LOSS: the gzip data is damaged or cut off.
#ifndef STAGECOACH_STAGE_DATA_PARALLEL_LINE_FILE_H_
#define STAGECOACH_STAGE_DATA_PARALLEL_LINE_FILE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/files/gzip.h"
#include "base/files/hash.h"
#include "stage/data/formats/data_file.h"

namespace stagecoach {

inline constexpr size_t kMostLineBytes = size_t{64} << 10;

class LineFile {
 public:
  static absl::StatusOr<std::unique_ptr<LineFile>> Open(const DataRoots& roots,
                                                        const std::string& field,
                                                        const std::string& path);
  // The next line without its end, "\n" or "\r\n"; nullopt: none is left. Valid until the next
  // call.
  absl::StatusOr<std::optional<std::string_view>> Next();

  int64_t line() const { return line_; }            // of the last one; 0 before the first
  int64_t text_bytes() const { return unpacked_; }  // read so far
  int64_t stored_bytes() const { return file_->size(); }
  std::string Digest() { return digest_.Hex(); }  // of the stored bytes, after the last line; once
  std::string Where() const { return file_->Where(); }
  std::string WhereLine() const;  // `data.parallel_text.sources[0] = "a", line 3`

 private:
  LineFile(std::unique_ptr<OpenedFile> file, std::vector<uint8_t> piece);
  // Appends some of the file to text_; false: all is there.
  absl::StatusOr<bool> Fill();
  absl::StatusOr<bool> FillUnpacked();
  absl::StatusOr<bool> ReadPiece();
  absl::Status Damaged(const char* how) const;
  absl::Status TooLong();
  std::string_view Rest() const { return std::string_view(text_).substr(begin_); }

  const std::unique_ptr<OpenedFile> file_;
  std::vector<uint8_t> piece_;       // of the stored bytes
  std::span<const uint8_t> stored_;  // what of it is not in text_ yet
  const bool packed_;
  GunzipMembers members_;
  Sha256 digest_;
  std::string text_;  // from begin_ on: not returned yet
  size_t begin_ = 0;
  int64_t line_ = 0, unpacked_ = 0;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_DATA_PARALLEL_LINE_FILE_H_
