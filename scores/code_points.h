// Code points of UTF-8, and Python's white space. The scores count code points and words as Python
// does.
// Threads: pure functions.
// Errors:  none. Callers check that a text is UTF-8 (base/utf8.h). Of another text every malformed
//          byte is a code point of its own, above U+10FFFF, and comes back as it was.
#ifndef STAGECOACH_SCORES_CODE_POINTS_H_
#define STAGECOACH_SCORES_CODE_POINTS_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace stagecoach {

struct CodePoint {
  char32_t value = 0;
  size_t bytes = 0;
};

// The one that begins at byte `at`, which is below text.size().
CodePoint CodePointAt(std::string_view text, size_t at);
void AppendCodePoint(char32_t value, std::string* text);

// One of the 29 code points for which Python's str.isspace holds.
bool IsWhiteSpace(char32_t value);

// As Python's str.split() and str.rstrip(). Parts of `text`.
std::vector<std::string_view> SplitWords(std::string_view text);
std::string_view WithoutTrailingSpace(std::string_view text);

}  // namespace stagecoach

#endif  // STAGECOACH_SCORES_CODE_POINTS_H_
