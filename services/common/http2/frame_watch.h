// FrameWatch: looks at the HTTP/2 frames of one direction of a connection, in front of gRPC. It
// says when the connection must end. A header block is buffered whole by gRPC 1.51 before it looks
// at any limit. A HEADERS frame and endless CONTINUATION frames take all memory (CVE-2023-33953).
// Streams that are opened and reset take memory too, and so do SETTINGS whose answers are not read.
// header_reader.h finds headers that end the connection, and tokens that may not be tried now.
// Ownership: borrows the clock.
// Threads:   thread-compatible: one reader at a time.
// Units:     bytes as they came, cut anywhere. It looks only into payloads of header blocks.
// Errors:    the first fault stays. A frame that the protocol forbids is left to gRPC, which ends
//            the connection. Padding and priorities in header blocks are a fault: no client of gRPC
//            sends them, and gRPC reads them in its own way.
// Source:    RFC 9113, 3.4 (preface), 4.1 (frames), 6.10 (CONTINUATION). The rate of resets is
//            nghttp2's default.
#ifndef STAGECOACH_SERVICES_COMMON_HTTP2_FRAME_WATCH_H_
#define STAGECOACH_SERVICES_COMMON_HTTP2_FRAME_WATCH_H_

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "base/threads/clock.h"
#include "services/common/http2/header_reader.h"

namespace stagecoach {

class FrameWatch {
 public:
  // kServer: the bytes that a server reads; they begin with the preface. kClient: those that a
  // client reads.
  enum class Side { kServer, kClient };
  enum class Fault { kNone, kPreface, kLongHeaders, kManyFrames, kHeaders, kResets, kGuesses };

  // Limit of one header block: gRPC splits its own at 16 KiB, and keeps 8 KiB of it.
  static constexpr size_t kMostHeaderBytes = 64 << 10;
  static constexpr int kMostHeaderFrames = 5;
  // Limit of its decoded fields, as gRPC has it on either side (GRPC_ARG_MAX_METADATA_SIZE).
  static constexpr int kMostFieldBytes = 8 << 10, kMostAnswerFieldBytes = 64 << 10;
  // Limits of RST_STREAM and SETTINGS frames that a server reads: at once, and per second.
  static constexpr double kResetStock = 1000;
  static constexpr double kResetsPerSecond = 33;

  // may_authorize: checks tokens that a server reads; empty: any may be tried.
  explicit FrameWatch(Side side, const Clock* clock = SystemClock::Get(),
                      MayAuthorize may_authorize = {})
      : side_(side),
        clock_(clock),
        headers_(side == Side::kServer ? kMostFieldBytes : kMostAnswerFieldBytes,
                 std::move(may_authorize)) {}

  Fault Take(std::string_view bytes);

 private:
  static constexpr size_t kHeadBytes = 9;

  Fault TakePreface(std::string_view* bytes);
  Fault TakeHead();       // requires that head_ is whole
  Fault TakeBlockHead();  // and begins or continues a header block
  Fault TakePayload(std::string_view piece);
  Fault TakeReset();

  const Side side_;
  const Clock* const clock_;
  Fault fault_ = Fault::kNone;
  size_t preface_bytes_ = 0;  // that have arrived
  unsigned char head_[kHeadBytes] = {};
  size_t head_bytes_ = 0;     // of head_ that have arrived
  size_t payload_bytes_ = 0;  // of the frame that are still missing
  bool in_block_ = false;     // the frame is one of a header block
  size_t block_bytes_ = 0;    // of the header block, with the rest of the frame
  int block_frames_ = 0;
  HeaderReader headers_;
  double resets_ = kResetStock;  // that are still allowed
  double reset_seconds_ = 0;     // when the last came
};

// The fault of the connection: "sent a header block of more than 64 KiB".
const char* FaultText(FrameWatch::Fault fault);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_HTTP2_FRAME_WATCH_H_
