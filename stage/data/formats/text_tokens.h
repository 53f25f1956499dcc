// TextTokens: a text as tokens, read where they are needed: it may be larger than memory.
// Threads: thread-compatible.
// Errors:  naming the file: UNAVAILABLE; DATA_LOSS if it became shorter.
#ifndef STAGECOACH_STAGE_DATA_FORMATS_TEXT_TOKENS_H_
#define STAGECOACH_STAGE_DATA_FORMATS_TEXT_TOKENS_H_

#include <cstdint>
#include <span>

#include "absl/status/status.h"

namespace stagecoach {

class TextTokens {
 public:
  virtual ~TextTokens() = default;
  virtual int64_t tokens() const = 0;
  // Fills `into` from token `first` on.
  virtual absl::Status Read(int64_t first, std::span<int32_t> into) const = 0;
  // FAILED_PRECONDITION: the text was written to since it was opened, so Read gives others.
  virtual absl::Status CheckUnchanged() const { return absl::OkStatus(); }
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_DATA_FORMATS_TEXT_TOKENS_H_
