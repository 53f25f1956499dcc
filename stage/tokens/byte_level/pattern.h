// Pattern: a regular expression that cuts a text, on ICU.
// Ownership: owns the compiled pattern.  Threads: a Pattern is immutable; a PatternFinder belongs
//            to one thread and borrows its pattern.
// Errors:    Make: INVALID_ARGUMENT: no pattern, or one that is not supported. Find:
//            INVALID_ARGUMENT: the pattern takes too long, or too much memory, on this text.
#ifndef STAGECOACH_STAGE_TOKENS_BYTE_LEVEL_PATTERN_H_
#define STAGECOACH_STAGE_TOKENS_BYTE_LEVEL_PATTERN_H_

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace stagecoach {

// Bytes [begin, end) of a text.
struct ByteRange {
  size_t begin = 0, end = 0;
  bool operator==(const ByteRange&) const = default;
};

class Pattern {
 public:
  // pattern: in the syntax of Oniguruma.
  static absl::StatusOr<Pattern> OfRegex(std::string_view pattern);
  static absl::StatusOr<Pattern> OfText(std::string_view text);  // this text itself
  Pattern(Pattern&&) noexcept;
  ~Pattern();

 private:
  friend class PatternFinder;
  struct Compiled;
  static absl::StatusOr<Pattern> Compile(const std::string& icu);
  explicit Pattern(std::unique_ptr<const Compiled> compiled);
  std::unique_ptr<const Compiled> compiled_;
};

class PatternFinder {
 public:
  explicit PatternFinder(const Pattern& pattern);
  ~PatternFinder();
  // What matches in the text, in order; a match may be empty. text: UTF-8.
  absl::Status Find(std::string_view text, std::vector<ByteRange>* matches);

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_TOKENS_BYTE_LEVEL_PATTERN_H_
