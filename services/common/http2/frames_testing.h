// HTTP/2 frames by hand, for bytes that no gRPC client sends.
// Threads:   pure functions.
// Source:    RFC 9113, 4.1.
#ifndef STAGECOACH_SERVICES_COMMON_HTTP2_FRAMES_TESTING_H_
#define STAGECOACH_SERVICES_COMMON_HTTP2_FRAMES_TESTING_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace stagecoach {

inline constexpr unsigned char kDataFrame = 0, kHeadersFrame = 1, kResetFrame = 3,
                               kSettingsFrame = 4, kContinuationFrame = 9;
inline constexpr unsigned char kAckFlag = 1, kEndHeadersFlag = 4;

inline std::string FrameOf(unsigned char kind, unsigned char flags, uint32_t stream,
                           std::string_view payload) {
  const size_t size = payload.size();
  std::string frame;
  for (const int shift : {16, 8, 0}) frame.push_back(static_cast<char>(size >> shift));
  frame.push_back(static_cast<char>(kind));
  frame.push_back(static_cast<char>(flags));
  for (const int shift : {24, 16, 8, 0}) frame.push_back(static_cast<char>(stream >> shift));
  return frame.append(payload);
}

// The first bytes of a client.
inline std::string Hello() {
  return "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + FrameOf(kSettingsFrame, 0, 0, "");
}

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_HTTP2_FRAMES_TESTING_H_
