// Patterns as tokenizers write them, in the syntax of Oniguruma (Ruby's), in the syntax of ICU.
//
// Some signs mean something else there: "^" and "$" are ends of lines, "\v" and "\h" are other
// characters, "{,3}" is a repetition. What has no equal there is refused.
// Threads: pure functions.
// Errors:  INVALID_ARGUMENT naming the part of the pattern and its place.
#ifndef STAGECOACH_STAGE_TOKENS_BYTE_LEVEL_ONIGURUMA_SYNTAX_H_
#define STAGECOACH_STAGE_TOKENS_BYTE_LEVEL_ONIGURUMA_SYNTAX_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace stagecoach {

// pattern: UTF-8. The result is ASCII.
absl::StatusOr<std::string> IcuPattern(std::string_view pattern);
// A pattern for the text itself.
std::string IcuPatternOfText(std::string_view text);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_TOKENS_BYTE_LEVEL_ONIGURUMA_SYNTAX_H_
