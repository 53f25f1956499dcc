// WrittenTexts: the lines of a job with `write`, put together from its pieces
// (plan/written_piece.h). Pieces come in any order and more than once. A piece that begins behind
// the known bytes of its line waits for the bytes between.
// Ownership: plain values.
// Threads:   thread-compatible.
// Errors:    DATA_LOSS: not all lines are whole.
#ifndef STAGECOACH_SERVICES_CLI_OUTPUT_WRITTEN_TEXTS_H_
#define STAGECOACH_SERVICES_CLI_OUTPUT_WRITTEN_TEXTS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "plan/written_piece.h"
#include "stagecoach/v1/job.pb.h"

namespace stagecoach {

struct WrittenLine {
  int64_t line = 0;  // of the job's lines, from 0
  std::string text;  // need not be UTF-8
  int64_t tokens = 0;
  double score = 0;
  bool ended = false;  // by itself or by a stop
};

// Either may be empty: not wanted.
struct WrittenTextEvents {
  // The new text of a line, as it comes.
  std::function<void(int64_t line, const std::string& more)> on_text;
  // A whole line; in the order of the lines.
  std::function<void(const WrittenLine&)> on_line;
};

class WrittenTexts {
 public:
  // lines: of the job. Pieces of other lines, and at offsets that no text has, are ignored.
  explicit WrittenTexts(int64_t lines) : lines_(static_cast<size_t>(lines)) {}

  // Takes the pieces of a record of the job's history and hands on what they make known.
  void Take(const v1::WrittenRecord& record, const WrittenTextEvents& events);
  // OK: all lines were handed on whole, as those of a job that succeeded are.
  absl::Status CheckWhole(const std::string& job) const;

  // The bytes of the piece's line that this piece makes known. Empty: none.
  std::string Take(const WrittenPiece& piece);
  // The whole lines behind those returned before, in order, up to the first line that is not
  // whole.
  std::vector<WrittenLine> TakeWhole();

 private:
  struct Line {
    std::string text;                      // empty once it is returned
    int64_t bytes = 0;                     // known, without a gap
    int64_t all_bytes = -1;                // of the whole text; -1: not known
    std::map<int64_t, std::string> ahead;  // pieces behind a gap, by offset
    WrittenPiece last;                     // without its text
  };

  std::vector<Line> lines_;
  size_t returned_ = 0;
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_OUTPUT_WRITTEN_TEXTS_H_
