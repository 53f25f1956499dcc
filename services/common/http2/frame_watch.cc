#include "services/common/http2/frame_watch.h"

#include <algorithm>
#include <cstring>

namespace stagecoach {
namespace {

constexpr std::string_view kClientPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
constexpr unsigned char kHeaders = 1, kResetStream = 3, kSettings = 4, kContinuation = 9;
constexpr unsigned char kAck = 1, kEndStream = 1, kEndHeaders = 4;

}  // namespace

FrameWatch::Fault FrameWatch::Take(std::string_view bytes) {
  if (fault_ == Fault::kNone && side_ == Side::kServer) fault_ = TakePreface(&bytes);
  while (fault_ == Fault::kNone && !bytes.empty()) {
    if (payload_bytes_ > 0) {
      const std::string_view payload = bytes.substr(0, payload_bytes_);
      payload_bytes_ -= payload.size();
      bytes.remove_prefix(payload.size());
      fault_ = TakePayload(payload);
      continue;
    }
    const size_t taken = std::min(bytes.size(), kHeadBytes - head_bytes_);
    std::memcpy(head_ + head_bytes_, bytes.data(), taken);
    head_bytes_ += taken;
    bytes.remove_prefix(taken);
    if (head_bytes_ == kHeadBytes) fault_ = TakeHead();
  }
  return fault_;
}

FrameWatch::Fault FrameWatch::TakePreface(std::string_view* bytes) {
  const std::string_view wanted = kClientPreface.substr(preface_bytes_, bytes->size());
  if (!bytes->starts_with(wanted)) return Fault::kPreface;
  preface_bytes_ += wanted.size();
  bytes->remove_prefix(wanted.size());
  return Fault::kNone;
}

FrameWatch::Fault FrameWatch::TakeHead() {
  head_bytes_ = 0;
  payload_bytes_ = size_t{head_[0]} << 16 | size_t{head_[1]} << 8 | head_[2];
  const unsigned char type = head_[3], flags = head_[4];
  in_block_ = type == kHeaders || type == kContinuation;
  if (in_block_) {
    if (const Fault fault = TakeBlockHead(); fault != Fault::kNone) return fault;
  }
  const bool reset = type == kResetStream || (type == kSettings && (flags & kAck) == 0);
  if (reset && side_ == Side::kServer) return TakeReset();
  return payload_bytes_ == 0 ? TakePayload("") : Fault::kNone;
}

// One that continues no block is a fault that gRPC finds; it counts with the block before it.
FrameWatch::Fault FrameWatch::TakeBlockHead() {
  if (head_[3] == kHeaders) {
    block_bytes_ = 0;
    block_frames_ = 0;
    headers_.Begin();
  }
  block_bytes_ += payload_bytes_;
  if (block_bytes_ > kMostHeaderBytes) return Fault::kLongHeaders;
  if (++block_frames_ > kMostHeaderFrames) return Fault::kManyFrames;
  return (head_[4] & ~(kEndStream | kEndHeaders)) == 0 ? Fault::kNone : Fault::kHeaders;
}

FrameWatch::Fault FrameWatch::TakePayload(std::string_view piece) {
  if (!in_block_) return Fault::kNone;
  const bool last = payload_bytes_ == 0 && (head_[4] & kEndHeaders) != 0;
  if (headers_.Take(piece) && (!last || headers_.End())) return Fault::kNone;
  return headers_.refused() ? Fault::kGuesses : Fault::kHeaders;
}

FrameWatch::Fault FrameWatch::TakeReset() {
  const double now = clock_->MonotonicSeconds();
  resets_ = std::min(kResetStock, resets_ + (now - reset_seconds_) * kResetsPerSecond);
  reset_seconds_ = now;
  if (resets_ < 1) return Fault::kResets;
  --resets_;
  return Fault::kNone;
}

const char* FaultText(FrameWatch::Fault fault) {
  switch (fault) {
    case FrameWatch::Fault::kNone:
      return "did nothing wrong";
    case FrameWatch::Fault::kPreface:
      return "did not begin with HTTP/2";
    case FrameWatch::Fault::kLongHeaders:
      return "sent a header block of more than 64 KiB";
    case FrameWatch::Fault::kManyFrames:
      return "sent a header block in more than 5 frames";
    case FrameWatch::Fault::kHeaders:
      return "sent headers that no client of gRPC sends, or more than 8 KiB of them";
    case FrameWatch::Fault::kResets:
      return "reset more than 1000 streams at once, or more than 33 a second";
    case FrameWatch::Fault::kGuesses:
      return "showed a token after 30 unknown ones from its address, or more than one a second";
  }
  return "";
}

}  // namespace stagecoach
