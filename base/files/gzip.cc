#include "base/files/gzip.h"

#include <isa-l/igzip_lib.h>

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"

namespace stagecoach {

struct Gunzip::State {
  inflate_state inflate;
  bool ended = false;
};

Gunzip::Gunzip() : state_(std::make_unique<State>()) {
  isal_inflate_init(&state_->inflate);
  state_->inflate.crc_flag = ISAL_GZIP;
}

void Gunzip::BeginAgain() {
  isal_inflate_reset(&state_->inflate);
  state_->inflate.crc_flag = ISAL_GZIP;
  state_->ended = false;
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

absl::StatusOr<GunzipMembers::Done> GunzipMembers::Unpack(std::span<const uint8_t> from,
                                                          std::span<uint8_t> into) {
  Done total;
  std::span<const uint8_t> left = from;
  while (total.written < into.size()) {
    if (ended_ && !Begin(&left)) {
      total.other = !left.empty();
      break;
    }
    ASSIGN_OR_RETURN(const Gunzip::Done done, gunzip_->Unpack(left, into.subspan(total.written)));
    left = left.subspan(done.read);
    total.written += done.written;
    ended_ = done.ended;
    if (done.read == 0 && done.written == 0 && !ended_) break;  // wants more
  }
  total.read = from.size() - left.size();
  return total;
}

bool GunzipMembers::Begin(std::span<const uint8_t>* from) {
  constexpr uint8_t kFirstOfMember = 0x1f;
  const auto other =
      std::find_if(from->begin(), from->end(), [](uint8_t byte) { return byte != 0; });
  padded_ = padded_ || other != from->begin();
  *from = from->subspan(static_cast<size_t>(other - from->begin()));
  if (from->empty() || from->front() != kFirstOfMember) return false;
  // Of many small members each would pay for a new state of 80 KB.
  if (gunzip_ == nullptr) {
    gunzip_ = std::make_unique<Gunzip>();
  } else {
    gunzip_->BeginAgain();
  }
  ended_ = false;
  ++members_;
  return true;
}

}  // namespace stagecoach
