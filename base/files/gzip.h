// Gunzip: unpacks one gzip member, piece by piece (ISA-L). Its checksum and length are verified at
// its end.
// GunzipMembers: unpacks a gzip file, which is one member or several.
// ISA-L unpacks, but it stops at a member's end, as zlib does. Members and padding are ours.
// Ownership: owns its state, some 80 KB.  Threads: thread-compatible.
// Errors:    DATA_LOSS: not gzip data, or damaged; it may not be used after that.
#ifndef STAGECOACH_BASE_FILES_GZIP_H_
#define STAGECOACH_BASE_FILES_GZIP_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "absl/status/statusor.h"

namespace stagecoach {

// Most bytes from one byte of gzip data: deflate codes 258 bytes in two bits.
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
    bool ended = false;  // the member is over; the rest of `from` is something else
  };
  // Unpacks until the member is over, `from` is read or `into` is full. Some output may still be
  // inside, so the end may need another call, with room for one byte more.
  absl::StatusOr<Done> Unpack(std::span<const uint8_t> from, std::span<uint8_t> into);
  void BeginAgain();  // starts another member

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// As in gzip and Python: members follow each other, and zeros may stand behind one.
class GunzipMembers {
 public:
  struct Done {
    size_t read = 0;     // of `from`
    size_t written = 0;  // of `into`
    bool other = false;  // the rest of `from` is neither zeros nor a member
  };
  // Unpacks until `from` is read, `into` is full, or something else follows. For the end, see
  // Gunzip::Unpack.
  absl::StatusOr<Done> Unpack(std::span<const uint8_t> from, std::span<uint8_t> into);
  // Whether a member is over and no other has begun: here a file may end.
  bool ended() const { return ended_; }
  // Whether all so far is one member with nothing behind it.
  bool single() const { return members_ == 1 && !padded_; }

 private:
  // Whether a member begins in `from` behind zeros, which it removes.
  bool Begin(std::span<const uint8_t>* from);

  std::unique_ptr<Gunzip> gunzip_ = std::make_unique<Gunzip>();
  int64_t members_ = 1;
  bool ended_ = false, padded_ = false;
};

}  // namespace stagecoach

#endif  // STAGECOACH_BASE_FILES_GZIP_H_
