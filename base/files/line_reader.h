// LineReader: the lines of a file, plain or gzip, one after the other. It keeps one line and a piece
// of the file in memory.
// Threads:  thread-compatible.  Progress: ticks with each piece.
// Units:    bytes; lines count from 1.
// Errors:   those of the function that reads. DATA_LOSS: damaged gzip data, with the remedy; the
//           caller puts the file's name in front.
#ifndef STAGECOACH_BASE_FILES_LINE_READER_H_
#define STAGECOACH_BASE_FILES_LINE_READER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/files/gzip.h"

namespace stagecoach {

// The space at which a text is cut. It is left out if a tokenizer puts one in front of each part. It
// begins the second part if not: there words begin with their space.
enum class CutSpace : uint8_t { kLeftOut, kBeginsPart };

// Where a text of more than `most` bytes, at least 8, is cut: at a space, without one between two
// characters. A space that begins a part stands between two words, if there is such a one.
struct TextCut {
  size_t part = 0;  // bytes of the first part
  size_t next = 0;  // where the second begins
};
TextCut CutText(std::string_view text, size_t most, CutSpace space = CutSpace::kLeftOut);

class LineReader {
 public:
  // The next bytes of the file, as many as there are room for or fewer; 0: it is over.
  using Read = std::function<absl::StatusOr<size_t>(std::span<uint8_t>)>;
  // most: bytes of a part.
  LineReader(Read read, size_t most, CutSpace space = CutSpace::kLeftOut)
      : read_(std::move(read)), most_(most), space_(space) {}

  // A line without its end, "\n" or "\r\n", or a part of one with more than `most` bytes.
  struct Part {
    std::string_view text;  // until the next call
    bool ends = false;      // the line is over
    std::string_view
        end;  // the bytes of its end: "\n", "\r\n", or a last "\r"; until the next call
  };
  // nullopt: none is left.
  absl::StatusOr<std::optional<Part>> Next();

  int64_t line() const { return line_; }              // of the last part; 0 before the first
  int64_t line_bytes() const { return line_bytes_; }  // of its parts so far, and spaces left out
  int64_t text_bytes() const { return text_bytes_; }  // unpacked so far
  bool packed() const { return unpack_ != nullptr; }

 private:
  // Appends some of the file to text_; false: all is there.
  absl::StatusOr<bool> Fill();
  absl::StatusOr<bool> FillUnpacked();
  absl::StatusOr<bool> ReadPiece();
  absl::Status Begin();
  Part Take(size_t part, size_t next, bool ends);
  std::string_view Rest() const { return std::string_view(text_).substr(begin_); }

  const Read read_;
  const size_t most_;
  const CutSpace space_;
  bool begun_ = false;
  std::vector<uint8_t> piece_;             // of the stored bytes
  std::span<const uint8_t> stored_;        // what of it is not in text_ yet
  std::unique_ptr<GunzipMembers> unpack_;  // null: plain, or nothing was read
  std::string text_;                       // from begin_ on: not taken yet
  size_t begin_ = 0;
  bool open_ = false;  // a line has begun; it may be empty, as all of it was taken
  int64_t line_ = 0, line_bytes_ = 0, text_bytes_ = 0;
};

}  // namespace stagecoach

#endif  // STAGECOACH_BASE_FILES_LINE_READER_H_
