// Suggestions: the known name nearest to a mistyped one.
#ifndef STAGECOACH_BASE_ERRORS_SUGGEST_H_
#define STAGECOACH_BASE_ERRORS_SUGGEST_H_

#include <string>
#include <vector>

namespace stagecoach {

// Number of insertions, deletions, replacements and swaps of neighbours between two words.
int EditDistance(const std::string& a, const std::string& b);

// "; did you mean \"micro_batches\"?", or nothing if none of the known words is near.
std::string DidYouMean(const std::string& wrong, const std::vector<std::string>& known);

// The same, or "; known here: a, b" if none is near.
std::string Suggestion(const std::string& wrong, const std::vector<std::string>& known);

}  // namespace stagecoach

#endif  // STAGECOACH_BASE_ERRORS_SUGGEST_H_
