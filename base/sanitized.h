// Whether this build has a sanitizer: tests then only run all code once, with fewer comparisons.
#ifndef STAGECOACH_BASE_SANITIZED_H_
#define STAGECOACH_BASE_SANITIZED_H_

namespace stagecoach {

#ifdef STAGECOACH_SANITIZED
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace stagecoach

#endif  // STAGECOACH_BASE_SANITIZED_H_
