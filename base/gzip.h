// Gunzip: unpacks one gzip member, piece by piece (ISA-L). Its checksum and length are verified at its end.
// Ownership: owns its state, some 80 KB.  Threads: thread-compatible.
// Errors:    DATA_LOSS: not gzip data, or damaged; it may not be used after that.
#ifndef STAGECOACH_BASE_GZIP_H_
#define STAGECOACH_BASE_GZIP_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "absl/status/statusor.h"

namespace stagecoach {

// What one byte of gzip data says at most: deflate says 258 bytes in two bits.
inline constexpr int64_t kMostGzipRatio = 1032;

bool LooksLikeGzip(std::string_view head);

class Gunzip {
 public:
  Gunzip();
  ~Gunzip();
  Gunzip(const Gunzip&) = delete;
  Gunzip& operator=(const Gunzip&) = delete;

  struct Done {
    size_t read = 0;     // of `from`
    size_t written = 0;  // of `into`
    bool ended = false;  // the member is over; what is left of `from` is something else
  };
  // Goes on until the member is over, `from` is read or `into` is full; some may still be inside then, so the end may
  // need a call with room for one byte more.
  absl::StatusOr<Done> Unpack(std::span<const uint8_t> from, std::span<uint8_t> into);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_BASE_GZIP_H_
