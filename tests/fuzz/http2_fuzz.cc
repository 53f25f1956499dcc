// Frames as a peer sends them, cut anywhere: the watch in front of gRPC says the same of every cut,
// and never lets a header block pass that is over its limits. The input is where to cut, then the
// bytes behind the preface.
#include <algorithm>
#include <string>

#include "base/testing/manual_clock.h"
#include "services/common/http2/frame_watch.h"
#include "services/common/http2/frames_testing.h"
#include "tests/fuzz/fuzz_target.h"

namespace stagecoach {
namespace {

using Fault = FrameWatch::Fault;

// What the frames come to, read in the plainest way, if their headers can be read.
Fault Expected(const std::string& bytes) {
  size_t block = 0;
  int frames = 0, resets = 0;
  for (size_t at = 0; at + 9 <= bytes.size();) {
    const auto byte = [&](size_t i) { return static_cast<unsigned char>(bytes[at + i]); };
    const size_t payload = size_t{byte(0)} * 65536 + byte(1) * 256 + byte(2);
    if (byte(3) == kHeadersFrame) block = 0, frames = 0;
    if (byte(3) == kHeadersFrame || byte(3) == kContinuationFrame) {
      block += payload;
      ++frames;
      if (block > FrameWatch::kMostHeaderBytes) return Fault::kLongHeaders;
      if (frames > FrameWatch::kMostHeaderFrames) return Fault::kManyFrames;
    }
    if (byte(3) == kResetFrame || (byte(3) == kSettingsFrame && byte(4) % 2 == 0)) ++resets;
    if (resets >= FrameWatch::kResetStock) return Fault::kResets;  // the hello has one
    at += 9 + payload;
  }
  return Fault::kNone;
}

}  // namespace

void FuzzHttp2(FuzzInput input) {
  const size_t piece = 1 + input.Byte();
  const std::string bytes = input.Rest();
  const ManualClock clock;
  FrameWatch whole(FrameWatch::Side::kServer, &clock), cut(FrameWatch::Side::kServer, &clock);
  const Fault fault = whole.Take(Hello() + bytes);
  CHECK(fault == Expected(bytes) || fault == Fault::kHeaders) << FaultText(fault);
  Fault of_pieces = cut.Take(Hello());
  for (size_t at = 0; at < bytes.size(); at += piece) of_pieces = cut.Take(bytes.substr(at, piece));
  CHECK(of_pieces == fault) << FaultText(of_pieces) << " in pieces of " << piece;
}

}  // namespace stagecoach

FUZZ_TARGET(http2, FuzzHttp2)
