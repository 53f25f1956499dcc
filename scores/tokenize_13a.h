// Tokenize13a: the tokens of NIST's mteval-v13a, as sacreBLEU 2.6.0 makes them. Punctuation becomes
// tokens, but a period or comma between digits stays. `<skipped>` goes, and four entities become
// their characters.
// Threads: pure functions.
// Errors:  none; text is UTF-8 (scores/code_points.h).
#ifndef STAGECOACH_SCORES_TOKENIZE_13A_H_
#define STAGECOACH_SCORES_TOKENIZE_13A_H_

#include <string>
#include <string_view>

namespace stagecoach {

// The tokens, with one blank between two.
std::string Tokenize13a(std::string_view text);

}  // namespace stagecoach

#endif  // STAGECOACH_SCORES_TOKENIZE_13A_H_
