// UTF-8: cleans text from outside before it becomes a protobuf string, or is shown. Libraries of
// base/ do not have this: Abseil checks no UTF-8, and protobuf's check is internal.
// Threads: pure functions.
#ifndef STAGECOACH_BASE_UTF8_H_
#define STAGECOACH_BASE_UTF8_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace stagecoach {

// Well-formed UTF-8 (no overlong forms, surrogates or values over U+10FFFF) without NUL.
bool IsUtf8Text(std::string_view text);
// Bytes at the end that begin a character and lack its last bytes; 0 to 3.
size_t UnfinishedBytes(std::string_view text);

// A file's name for a message: bytes that are no UTF-8, and characters that a terminal takes for a
// command or a line's end, become text like "\x1b".
std::string ShownName(std::string_view name);
// The same for a whole message, which may have lines.
std::string ShownText(std::string_view text);

}  // namespace stagecoach

#endif  // STAGECOACH_BASE_UTF8_H_
