// Name patterns: a pattern names several parameters of a job at once. "*" stands for any characters
// and "?" for one, as in "model/000?/*" and "*.bias".
// Errors: INVALID_ARGUMENT with the pattern's path in the job.
#ifndef STAGECOACH_BASE_FILES_NAME_PATTERNS_H_
#define STAGECOACH_BASE_FILES_NAME_PATTERNS_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace stagecoach {

bool MatchesPattern(std::string_view pattern, std::string_view name);

// Limits the number and length of patterns, because each is compared with each name. `path`: of
// their list.
absl::Status CheckPatterns(const std::vector<std::string>& patterns, const std::string& path);

}  // namespace stagecoach

#endif  // STAGECOACH_BASE_FILES_NAME_PATTERNS_H_
