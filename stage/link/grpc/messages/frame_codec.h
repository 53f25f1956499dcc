// Frame codec: the messages of proto/stagecoach/v1/link.proto. Their generated classes write and
// read all but the envelope and a frame's data, which protobuf would copy. ExchangeRequest and
// ExchangeResponse have the same bytes.
// Ownership: decoding borrows the pieces; a decoded frame refers to its payload by position.
// Errors:    DATA_LOSS for damage: bytes that are no message, or whose checksum is not their own.
//            INVALID_ARGUMENT for a whole message that no correct peer sends, naming the field.
//            Never a crash, and no allocation from an unchecked number.
// See: docs/formats.md, "Link frames".
#ifndef STAGECOACH_STAGE_LINK_GRPC_MESSAGES_FRAME_CODEC_H_
#define STAGECOACH_STAGE_LINK_GRPC_MESSAGES_FRAME_CODEC_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "base/ids.h"
#include "base/numbers/dtype.h"
#include "stage/link/link.h"

namespace stagecoach {

inline constexpr uint32_t kLinkProtocol = 1;
inline constexpr uint32_t kMaxTensorsPerMessage = 64;  // kMaxCutValues of network/limits.h

struct LinkHello {
  BoundaryId boundary;
  uint32_t protocol = kLinkProtocol;
  uint32_t capacity = 0;  // messages that the hello's sender accepts before it gives credit
  friend bool operator==(const LinkHello&, const LinkHello&) = default;
};

struct LinkCredit {
  uint64_t taken = 0;  // messages, since the stream began
  uint32_t round = 0;  // of the newest repeat that was read; 0: of none
  friend bool operator==(const LinkCredit&, const LinkCredit&) = default;
};

struct LinkRepeat {
  uint32_t round = 0;  // counts from 1
  uint64_t next = 0;   // messages that arrived whole since the stream began
  friend bool operator==(const LinkRepeat&, const LinkRepeat&) = default;
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

using LinkMessage = std::variant<LinkHello, LinkCredit, LinkFrame, LinkRepeat>;

std::string EncodeHello(const LinkHello& hello);
std::string EncodeCredit(const LinkCredit& credit);
std::string EncodeRepeat(const LinkRepeat& repeat);
// Everything before the payload; frame.data_bytes payload bytes must follow.
std::string EncodeFrameHead(const LinkFrame& frame);

using Pieces = std::span<const std::span<const std::byte>>;

// One message that arrived in pieces.
absl::StatusOr<LinkMessage> DecodeLinkMessage(Pieces pieces);

// Copies target.size() bytes from `position` on; the caller has checked that they are there.
void CopyPieces(Pieces pieces, uint64_t position, std::span<std::byte> target);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_LINK_GRPC_MESSAGES_FRAME_CODEC_H_
