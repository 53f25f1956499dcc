// ReadLines, ReadText: hand on a text file (base/files/line_reader.h), which must be UTF-8, by lines
// or by parts of many lines. Neither file nor line need fit in memory.
// Threads: any.
// Errors:  those of the reader and of `take`. INVALID_ARGUMENT naming the line: not UTF-8, or a
//          zero byte.
#ifndef STAGECOACH_STAGE_TOKENS_TEXT_LINES_H_
#define STAGECOACH_STAGE_TOKENS_TEXT_LINES_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "base/files/line_reader.h"

namespace stagecoach {

// The next bytes of a file, as many as there are room for or fewer; 0: it is over.
using ReadBytes = absl::FunctionRef<absl::StatusOr<size_t>(std::span<uint8_t>)>;
// A line without its end, "\n" or "\r\n", or a part of a long one; `ends`: the line is over.
using TakeLine = absl::FunctionRef<absl::Status(std::string_view part, bool ends)>;

// Of a line to encode; a longer one is encoded by parts.
inline constexpr size_t kMostPartBytes = size_t{64} << 10;

// most: bytes of a part, at least 8; a long line is cut as CutText says.
absl::Status ReadLines(ReadBytes read, size_t most, TakeLine take,
                       CutSpace space = CutSpace::kLeftOut);

// The same of a named file; errors name it.
absl::Status ReadLinesOf(const std::string& path, size_t most, TakeLine take,
                         CutSpace space = CutSpace::kLeftOut);

// A text in parts of `most` bytes or more, line ends included. It is cut where one "\n" stands between
// two words, else in front of a space between two: there no piece of the usual byte-level tokenizers
// goes on. A text of 8 * `most` bytes without such a place is cut at a line end, and a line of more than
// `most` bytes as ReadLines does. `ends`: the text is over; an empty file has no part.
absl::Status ReadText(ReadBytes read, size_t most, TakeLine take);

// Reads from a descriptor, as ReadBytes does.
absl::StatusOr<size_t> ReadDescriptor(int descriptor, std::span<uint8_t> into);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_TOKENS_TEXT_LINES_H_
