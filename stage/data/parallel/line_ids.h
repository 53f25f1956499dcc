// LineIds: the ids of each line of a file, as a tokenizer makes them. They are made once for the
// content of the file and kept (stage/data/cache/token_cache.h), so any reader of the same lines
// with the same tokenizer on this machine finds them. A mark stands behind each line.
// Ownership: shares the ids, of which only a buffer is in memory; a survey's are all in memory.
// Threads:   thread-compatible. Opening and reading tick progress.
// Units:     lines count from 1, ids from 0.
// Errors:    as line_file.h; those of the cache name --cache-dir. INVALID_ARGUMENT naming file and
//            line: no UTF-8, or not exactly one tab. FAILED_PRECONDITION: the file was written to
//            while it was read.
#ifndef STAGECOACH_STAGE_DATA_PARALLEL_LINE_IDS_H_
#define STAGECOACH_STAGE_DATA_PARALLEL_LINE_IDS_H_

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "stage/data/formats/line_file.h"
#include "stage/data/formats/text_tokens.h"
#include "stage/files/data_roots.h"
#include "stage/tokens/tokenizer.h"

namespace stagecoach {

inline constexpr size_t kMostSentenceBytes = size_t{64} << 10;
LineRules SentenceLines();

enum class LinePart : uint8_t { kWhole, kBeforeTab, kBehindTab };

// Lines of a file of sentences.
struct SentenceFile {
  std::string field, path;
  LinePart part = LinePart::kWhole;
  std::string other_field;  // of a part: where the other part could have a file of its own
  // A survey reads the lines of about so many bytes of text, and keeps nothing.
  std::optional<int64_t> survey_bytes;
};

// FAILED_PRECONDITION.
absl::Status ChangedWhileRead(const std::string& where);

// That part of a line; INVALID_ARGUMENT: the line has not exactly one tab.
absl::StatusOr<std::string_view> PartOfLine(const SentenceFile& file, const LineFile& lines,
                                            std::string_view line);

struct LineIds {
  std::shared_ptr<const TextTokens> ids;  // of all lines, with `mark` behind each
  int32_t mark = 0;                       // no id of the tokenizer
  std::string where;                      // `data.parallel_text.sources[0] = "a"`
  std::string digest;                     // SHA-256 of the stored bytes; of a survey those it read
  int64_t stored_bytes = 0;
  bool whole = true;  // false: a survey left lines out
};
absl::StatusOr<LineIds> OpenLineIds(const DataRoots& roots, const SentenceFile& file,
                                    const Tokenizer& tokenizer);

// The lines of LineIds, one after the other.
class LineIdsReader {
 public:
  explicit LineIdsReader(const LineIds& lines) : lines_(lines) {}
  // The next line's ids, valid until the next call; nullopt: none is left.
  absl::StatusOr<std::optional<std::span<const int32_t>>> Next();
  int64_t line() const { return line_; }    // of the last one; 0 before the first
  int64_t begin() const { return begin_; }  // of its ids in LineIds::ids

 private:
  absl::Status Fill();

  const LineIds& lines_;
  std::vector<int32_t> buffer_;  // ids before read_
  size_t next_ = 0;              // of the buffer: where the next line begins
  int64_t read_ = 0, line_ = 0, begin_ = 0;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_DATA_PARALLEL_LINE_IDS_H_
