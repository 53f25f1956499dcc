// LineFile: the lines of a data set's file, plain or gzip, one after the other.
// Ownership: owns its file.  Threads: thread-compatible.
// Units:     lines count from 1.
// Errors:    all name field and path, those of a line its number. Those of data_file.h and
//            base/files/line_reader.h, and INVALID_ARGUMENT: the first bytes are not such a file's,
//            or a line has too many bytes.
#ifndef STAGECOACH_STAGE_DATA_FORMATS_LINE_FILE_H_
#define STAGECOACH_STAGE_DATA_FORMATS_LINE_FILE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/files/hash.h"
#include "base/files/line_reader.h"
#include "stage/data/formats/data_file.h"

namespace stagecoach {

// Rules that the lines of a file must keep.
struct LineRules {
  // where: `data.parallel_text.sources[0] = "a"`; head: its first bytes, kDataHeadBytes at most.
  absl::Status (*check_head)(const std::string& where, std::string_view head) = nullptr;
  size_t most_bytes = 0;     // of a line
  const char* shorten = "";  // the remedy for a longer one
};

class LineFile {
 public:
  static absl::StatusOr<std::unique_ptr<LineFile>> Open(const DataRoots& roots,
                                                        const std::string& field,
                                                        const std::string& path,
                                                        const LineRules& rules);
  // The next line without its end, "\n" or "\r\n"; nullopt: none is left. Valid until the next
  // call.
  absl::StatusOr<std::optional<std::string_view>> Next();

  int64_t line() const { return lines_.line(); }              // of the last one; 0 before the first
  int64_t text_bytes() const { return lines_.text_bytes(); }  // read so far
  int64_t stored_bytes() const { return file_->size(); }
  int64_t read_bytes() const { return file_->size() - file_->left(); }  // of the stored ones
  std::string Digest() { return digest_.Hex(); }  // of the stored bytes, after the last line; once
  std::string Where() const { return file_->Where(); }
  std::string name() const { return file_->name(); }
  std::string WhereLine() const;  // `data.parallel_text.sources[0] = "a", line 3`
  absl::Status CheckUnchanged() const { return file_->CheckUnchanged(); }

 private:
  LineFile(std::unique_ptr<OpenedFile> file, const LineRules& rules);
  absl::StatusOr<size_t> Read(std::span<uint8_t> into);
  absl::Status TooLong();

  const std::unique_ptr<OpenedFile> file_;
  const LineRules rules_;
  Sha256 digest_;
  absl::Status read_;  // of the file itself; it names itself
  LineReader lines_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_DATA_FORMATS_LINE_FILE_H_
