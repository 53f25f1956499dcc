// Job names and job ids: one rule for all texts that become part of a path, a metric's label or a
// line of text. A caller that refuses one names the field and adds kJobNameRule.
#ifndef STAGECOACH_BASE_JOB_NAME_H_
#define STAGECOACH_BASE_JOB_NAME_H_

#include <cstddef>
#include <string_view>

namespace stagecoach {

inline constexpr size_t kMaxJobNameLength = 63;
inline constexpr char kJobNameRule[] = "1 to 63 characters of a-z, 0-9 and -";

inline bool IsJobName(std::string_view name) {
  constexpr char kCharacters[] = "abcdefghijklmnopqrstuvwxyz0123456789-";
  return !name.empty() && name.size() <= kMaxJobNameLength &&
         name.find_first_not_of(kCharacters) == std::string_view::npos;
}

}  // namespace stagecoach

#endif  // STAGECOACH_BASE_JOB_NAME_H_
