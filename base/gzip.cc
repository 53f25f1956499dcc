#include "base/gzip.h"

#include <isa-l/igzip_lib.h>

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"

namespace stagecoach {

struct Gunzip::State {
  inflate_state inflate;
  bool ended = false;
};

Gunzip::Gunzip() : state_(std::make_unique<State>()) {
  isal_inflate_init(&state_->inflate);
  state_->inflate.crc_flag = ISAL_GZIP;
}

Gunzip::~Gunzip() = default;

bool LooksLikeGzip(std::string_view head) { return head.starts_with("\x1f\x8b"); }

absl::StatusOr<Gunzip::Done> Gunzip::Unpack(std::span<const uint8_t> from,
                                            std::span<uint8_t> into) {
  constexpr size_t kMost = std::numeric_limits<uint32_t>::max() / 2;  // it counts in 32 bits
  inflate_state& inflate = state_->inflate;
  const auto given = static_cast<uint32_t>(std::min(from.size(), kMost));
  const auto room = static_cast<uint32_t>(std::min(into.size(), kMost));
  Done done{.ended = state_->ended};
  if (done.ended || room == 0) return done;
  inflate.next_in = const_cast<uint8_t*>(from.data());  // it only reads
  inflate.avail_in = given;
  inflate.next_out = into.data();
  inflate.avail_out = room;
  const int result = isal_inflate(&inflate);
  // A result above 0 says that input or room ended, which the counts tell too.
  if (result < 0) {
    return absl::DataLossError(result == ISAL_INCORRECT_CHECKSUM
                                   ? "its gzip checksum does not hold: damaged"
                                   : absl::StrCat("no gzip data, or damaged (", result, ")"));
  }
  done.read = given - inflate.avail_in;
  done.written = room - inflate.avail_out;
  done.ended = state_->ended = inflate.block_state == ISAL_BLOCK_FINISH;
  return done;
}

}  // namespace stagecoach
