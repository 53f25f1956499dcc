// Frame codec: the messages of proto/stagecoach/v1/link.proto, written and read by hand so that
// payload is never copied by protobuf. ExchangeRequest and ExchangeResponse have the same bytes. A
// test holds both directions to the generated classes.
// Ownership: decoding borrows the pieces; a decoded frame refers to its payload by position.
// Errors:    INVALID_ARGUMENT for what no correct peer sends, naming the field, and for a head whose checksum is not its
//            own; never a crash and no allocation from an unchecked number.
// See: docs/formats.md, "Link frames".
#ifndef STAGECOACH_STAGE_LINK_GRPC_FRAME_CODEC_H_
#define STAGECOACH_STAGE_LINK_GRPC_FRAME_CODEC_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "base/dtype.h"
#include "base/ids.h"
#include "stage/link/link.h"

namespace stagecoach {

inline constexpr uint32_t kLinkProtocol = 2;           // heads have checksums
inline constexpr uint32_t kMaxTensorsPerMessage = 64;  // kMaxCutValues of network/limits.h

struct LinkHello {
  BoundaryId boundary;
  uint32_t protocol = kLinkProtocol;
  uint32_t capacity = 0;  // messages that the sender of this hello takes before it gives credit
  friend bool operator==(const LinkHello&, const LinkHello&) = default;
};

struct LinkCredit {
  uint32_t messages = 0;
  friend bool operator==(const LinkCredit&, const LinkCredit&) = default;
};

struct LinkFrame {
  uint64_t term = 0, generation = 0, step = 0;
  uint32_t attempt = 0;
  MessageKind kind = MessageKind::kActivation;
  uint32_t micro_batch = 0;
  uint32_t tensor_index = 0, tensor_count = 0;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  uint64_t offset = 0;  // of this chunk in the tensor
  int64_t sent_unix_nanos = 0;
  uint32_t crc32c = 0;
  uint64_t data_bytes = 0;
  uint64_t data_position = 0;  // in the encoded message; decoding only
  uint64_t tensor_bytes = 0;   // of the whole tensor, from dtype and shape; decoding only
  friend bool operator==(const LinkFrame&, const LinkFrame&) = default;
};

using LinkMessage = std::variant<LinkHello, LinkCredit, LinkFrame>;

std::string EncodeHello(const LinkHello& hello);
std::string EncodeCredit(const LinkCredit& credit);
// Everything before the payload; frame.data_bytes payload bytes must follow.
std::string EncodeFrameHead(const LinkFrame& frame);

using Pieces = std::span<const std::span<const std::byte>>;

// One message that arrived in pieces.
absl::StatusOr<LinkMessage> DecodeLinkMessage(Pieces pieces);

// Copies target.size() bytes from `position` on; they were checked to be there.
void CopyPieces(Pieces pieces, uint64_t position, std::span<std::byte> target);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_LINK_GRPC_FRAME_CODEC_H_
