#include "stage/link/grpc/frame_codec.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/hash.h"
#include "base/status.h"
#include "network/limits.h"
#include "stage/link/grpc/wire.h"

namespace stagecoach {

static_assert(kMaxTensorsPerMessage == kMaxCutValues, "what may cross a cut fits a message");

namespace {

// Field numbers of link.proto and of stage.proto's Fence.
enum Envelope { kHello = 1, kCredit = 2, kFrame = 3 };
enum HelloField { kHelloFence = 1, kUpstream = 2, kProtocol = 3, kCapacity = 4, kHelloCrc = 5 };
enum CreditField { kMessages = 1, kCreditCrc = 2 };
enum FenceField { kFenceJob = 1, kFenceTerm = 2, kFenceGeneration = 3 };
enum FrameField {
  kTerm = 1,
  kGeneration = 2,
  kStep = 3,
  kAttempt = 4,
  kKind = 5,
  kMicroBatch = 6,
  kTensorIndex = 7,
  kTensorCount = 8,
  kDType = 9,
  kShape = 10,
  kOffset = 11,
  kSent = 12,
  kCrc = 13,
  kHeadCrc = 14,
  kData = 15
};

constexpr size_t kMaxJobBytes = 256;
constexpr uint64_t kMaxMessages = 1 << 20;  // of a capacity or a credit
// 16 GiB: far above any activation, low enough that offsets and sums cannot overflow.
constexpr uint64_t kMaxTensorBytes = uint64_t{1} << 34;

absl::Status Bad(const char* field, uint64_t value, const char* want) {
  return absl::InvalidArgumentError(
      absl::StrCat("link frame: ", field, "=", value, ", want ", want));
}

absl::Status CheckWireType(const WireTag& tag, WireType wanted) {
  if (tag.type == wanted) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("link frame: field ", tag.field, " has wire type ",
                                                 static_cast<int>(tag.type), ", want ",
                                                 static_cast<int>(wanted)));
}

absl::Status ReadNumber(const WireTag& tag, WireReader& reader, uint64_t* value) {
  RETURN_IF_ERROR(CheckWireType(tag, WireType::kVarint));
  ASSIGN_OR_RETURN(*value, reader.ReadVarint());
  return absl::OkStatus();
}

absl::Status ReadChecksum(const WireTag& tag, WireReader& reader, uint64_t* value) {
  RETURN_IF_ERROR(CheckWireType(tag, WireType::kFixed32));
  ASSIGN_OR_RETURN(*value, reader.ReadFixed32());
  return absl::OkStatus();
}

// Of a head, as it is written: a flipped bit that makes another micro-batch of this one must not pass.
uint32_t HeadChecksum(const std::string& head) {
  return Crc32c(std::as_bytes(std::span<const char>(head.data(), head.size())));
}

absl::Status CheckChecksum(const char* of, const std::string& head, uint64_t sent) {
  if (const uint32_t own = HeadChecksum(head); own != sent) {
    return absl::InvalidArgumentError(
        absl::StrCat("link frame: the ", of, " has CRC-32C ", own, ", sent with ", sent));
  }
  return absl::OkStatus();
}

// The messages without their checksums, and a frame's without its data.
std::string HelloBody(const LinkHello& hello) {
  std::string fence, body;
  AppendBytesField(kFenceJob, hello.boundary.job, &fence);
  AppendVarintField(kFenceTerm, hello.boundary.term, &fence);
  AppendVarintField(kFenceGeneration, hello.boundary.generation, &fence);
  AppendMessageField(kHelloFence, fence, &body);
  AppendVarintField(kUpstream, static_cast<uint64_t>(hello.boundary.upstream.value), &body);
  AppendVarintField(kProtocol, hello.protocol, &body);
  AppendVarintField(kCapacity, hello.capacity, &body);
  return body;
}

std::string CreditBody(const LinkCredit& credit) {
  std::string body;
  AppendVarintField(kMessages, credit.messages, &body);
  return body;
}

std::string FrameBody(const LinkFrame& frame) {
  std::string body;
  body.reserve(128);
  AppendVarintField(kTerm, frame.term, &body);
  AppendVarintField(kGeneration, frame.generation, &body);
  AppendVarintField(kStep, frame.step, &body);
  AppendVarintField(kAttempt, frame.attempt, &body);
  AppendVarintField(kKind, static_cast<uint64_t>(frame.kind), &body);
  AppendVarintField(kMicroBatch, frame.micro_batch, &body);
  AppendVarintField(kTensorIndex, frame.tensor_index, &body);
  AppendVarintField(kTensorCount, frame.tensor_count, &body);
  AppendVarintField(kDType, static_cast<uint64_t>(frame.dtype), &body);
  if (!frame.shape.empty()) {
    std::string extents;
    for (const int64_t extent : frame.shape) AppendVarint(static_cast<uint64_t>(extent), &extents);
    AppendMessageField(kShape, extents, &body);
  }
  AppendVarintField(kOffset, frame.offset, &body);
  AppendVarintField(kSent, static_cast<uint64_t>(frame.sent_unix_nanos), &body);
  AppendFixed32Field(kCrc, frame.crc32c, &body);
  return body;
}

absl::StatusOr<BoundaryId> DecodeFence(WireReader reader) {
  BoundaryId boundary;
  while (!reader.AtEnd()) {
    ASSIGN_OR_RETURN(const WireTag tag, reader.ReadTag());
    if (tag.field == kFenceJob) {
      RETURN_IF_ERROR(CheckWireType(tag, WireType::kBytes));
      ASSIGN_OR_RETURN(boundary.job, reader.ReadString(kMaxJobBytes));
    } else if (tag.field == kFenceTerm) {
      RETURN_IF_ERROR(ReadNumber(tag, reader, &boundary.term));
    } else if (tag.field == kFenceGeneration) {
      RETURN_IF_ERROR(ReadNumber(tag, reader, &boundary.generation));
    } else {
      RETURN_IF_ERROR(reader.Skip(tag));
    }
  }
  return boundary;
}

absl::StatusOr<LinkHello> DecodeHello(WireReader reader) {
  LinkHello hello;
  uint64_t upstream = 0, protocol = 0, capacity = 0, checksum = 0;
  while (!reader.AtEnd()) {
    ASSIGN_OR_RETURN(const WireTag tag, reader.ReadTag());
    if (tag.field == kHelloFence) {
      RETURN_IF_ERROR(CheckWireType(tag, WireType::kBytes));
      ASSIGN_OR_RETURN(const WireReader fence, reader.ReadMessage());
      ASSIGN_OR_RETURN(hello.boundary, DecodeFence(fence));
    } else if (tag.field == kUpstream) {
      RETURN_IF_ERROR(ReadNumber(tag, reader, &upstream));
    } else if (tag.field == kProtocol) {
      RETURN_IF_ERROR(ReadNumber(tag, reader, &protocol));
    } else if (tag.field == kCapacity) {
      RETURN_IF_ERROR(ReadNumber(tag, reader, &capacity));
    } else if (tag.field == kHelloCrc) {
      RETURN_IF_ERROR(ReadChecksum(tag, reader, &checksum));
    } else {
      RETURN_IF_ERROR(reader.Skip(tag));
    }
  }
  if (upstream >= std::numeric_limits<int32_t>::max()) {
    return Bad("hello.upstream", upstream, "the index of a stage");
  }
  if (protocol > std::numeric_limits<uint32_t>::max()) return Bad("hello.protocol", protocol, "1");
  if (capacity == 0 || capacity > kMaxMessages) {
    return Bad("hello.capacity", capacity, "1 to 2^20");
  }
  hello.boundary.upstream = StageId(static_cast<int32_t>(upstream));
  hello.protocol = static_cast<uint32_t>(protocol);
  hello.capacity = static_cast<uint32_t>(capacity);
  // A peer of protocol 1, which had no checksums, is told so, and not that its bits are wrong.
  if (checksum == 0 && hello.protocol != kLinkProtocol) return hello;
  RETURN_IF_ERROR(CheckChecksum("hello", HelloBody(hello), checksum));
  return hello;
}

absl::StatusOr<LinkCredit> DecodeCredit(WireReader reader) {
  uint64_t messages = 0, checksum = 0;
  while (!reader.AtEnd()) {
    ASSIGN_OR_RETURN(const WireTag tag, reader.ReadTag());
    if (tag.field == kMessages) {
      RETURN_IF_ERROR(ReadNumber(tag, reader, &messages));
    } else if (tag.field == kCreditCrc) {
      RETURN_IF_ERROR(ReadChecksum(tag, reader, &checksum));
    } else {
      RETURN_IF_ERROR(reader.Skip(tag));
    }
  }
  if (messages == 0 || messages > kMaxMessages)
    return Bad("credit.messages", messages, "1 to 2^20");
  const LinkCredit credit{static_cast<uint32_t>(messages)};
  RETURN_IF_ERROR(CheckChecksum("credit", CreditBody(credit), checksum));
  return credit;
}

absl::Status AppendExtent(uint64_t extent, std::vector<int64_t>* shape) {
  if (shape->size() >= static_cast<size_t>(Shape::kMaxRank)) {
    return Bad("shape", shape->size() + 1, "at most 8 extents");
  }
  shape->push_back(static_cast<int64_t>(extent));
  return absl::OkStatus();
}

// Packed, or one number per field: proto3 readers must take both.
absl::Status DecodeExtents(const WireTag& tag, WireReader& reader, std::vector<int64_t>* shape) {
  if (tag.type == WireType::kVarint) {
    ASSIGN_OR_RETURN(const uint64_t extent, reader.ReadVarint());
    return AppendExtent(extent, shape);
  }
  RETURN_IF_ERROR(CheckWireType(tag, WireType::kBytes));
  ASSIGN_OR_RETURN(WireReader packed, reader.ReadMessage());
  while (!packed.AtEnd()) {
    ASSIGN_OR_RETURN(const uint64_t extent, packed.ReadVarint());
    RETURN_IF_ERROR(AppendExtent(extent, shape));
  }
  return absl::OkStatus();
}

// Numbers as they came, before their ranges are checked.
struct RawFrame {
  std::array<uint64_t, kData + 1> numbers{};  // by field number
  std::vector<int64_t> shape;
  uint64_t data_position = 0, data_bytes = 0;
};

absl::StatusOr<RawFrame> DecodeRawFrame(WireReader reader) {
  RawFrame raw;
  while (!reader.AtEnd()) {
    ASSIGN_OR_RETURN(const WireTag tag, reader.ReadTag());
    if (tag.field == kShape) {
      RETURN_IF_ERROR(DecodeExtents(tag, reader, &raw.shape));
    } else if (tag.field == kData) {
      RETURN_IF_ERROR(CheckWireType(tag, WireType::kBytes));
      ASSIGN_OR_RETURN(const WireReader data, reader.ReadMessage());
      raw.data_position = data.position();
      raw.data_bytes = data.remaining();
    } else if (tag.field == kCrc || tag.field == kHeadCrc) {
      RETURN_IF_ERROR(ReadChecksum(tag, reader, &raw.numbers[tag.field]));
    } else if (tag.field <= kSent) {
      RETURN_IF_ERROR(ReadNumber(tag, reader, &raw.numbers[tag.field]));
    } else {
      RETURN_IF_ERROR(reader.Skip(tag));
    }
  }
  return raw;
}

absl::Status CheckRanges(const RawFrame& raw) {
  const auto& n = raw.numbers;
  if (n[kAttempt] > std::numeric_limits<uint32_t>::max()) {
    return Bad("attempt", n[kAttempt], "32 bits");
  }
  if (n[kKind] < 1 || n[kKind] > 4) return Bad("kind", n[kKind], "1 to 4");
  if (n[kMicroBatch] >= std::numeric_limits<int32_t>::max()) {
    return Bad("micro_batch", n[kMicroBatch], "the index of a micro-batch");
  }
  if (n[kTensorCount] == 0 || n[kTensorCount] > kMaxTensorsPerMessage) {
    return Bad("tensor_count", n[kTensorCount], "1 to 64");
  }
  if (n[kTensorIndex] >= n[kTensorCount]) {
    return Bad("tensor_index", n[kTensorIndex], "less than tensor_count");
  }
  if (n[kDType] < static_cast<uint64_t>(DType::kF32) ||
      n[kDType] > static_cast<uint64_t>(DType::kI64)) {
    return Bad("dtype", n[kDType], "1 to 6");
  }
  return absl::OkStatus();
}

absl::StatusOr<LinkFrame> DecodeFrame(WireReader reader) {
  ASSIGN_OR_RETURN(RawFrame raw, DecodeRawFrame(reader));
  RETURN_IF_ERROR(CheckRanges(raw));
  const auto& n = raw.numbers;
  LinkFrame frame;
  frame.term = n[kTerm];
  frame.generation = n[kGeneration];
  frame.step = n[kStep];
  frame.attempt = static_cast<uint32_t>(n[kAttempt]);
  frame.kind = static_cast<MessageKind>(n[kKind]);
  frame.micro_batch = static_cast<uint32_t>(n[kMicroBatch]);
  frame.tensor_index = static_cast<uint32_t>(n[kTensorIndex]);
  frame.tensor_count = static_cast<uint32_t>(n[kTensorCount]);
  frame.dtype = static_cast<DType>(n[kDType]);
  frame.offset = n[kOffset];
  frame.sent_unix_nanos = static_cast<int64_t>(n[kSent]);
  frame.crc32c = static_cast<uint32_t>(n[kCrc]);
  frame.data_bytes = raw.data_bytes;
  frame.data_position = raw.data_position;
  ASSIGN_OR_RETURN(const int64_t elements, CheckedElements(raw.shape));
  const uint64_t element_bytes = static_cast<uint64_t>(DTypeSize(frame.dtype));
  if (static_cast<uint64_t>(elements) > kMaxTensorBytes / element_bytes) {
    return Bad("shape", static_cast<uint64_t>(elements), "at most 2^34 bytes");
  }
  frame.tensor_bytes = static_cast<uint64_t>(elements) * element_bytes;
  if (frame.offset > frame.tensor_bytes || frame.data_bytes > frame.tensor_bytes - frame.offset) {
    return Bad("offset", frame.offset, "a chunk inside its tensor");
  }
  frame.shape = std::move(raw.shape);
  RETURN_IF_ERROR(CheckChecksum("head", FrameBody(frame), n[kHeadCrc]));
  return frame;
}

}  // namespace

std::string EncodeHello(const LinkHello& hello) {
  std::string body = HelloBody(hello), message;
  AppendFixed32Field(kHelloCrc, HeadChecksum(body), &body);
  AppendMessageField(kHello, body, &message);
  return message;
}

std::string EncodeCredit(const LinkCredit& credit) {
  std::string body = CreditBody(credit), message;
  AppendFixed32Field(kCreditCrc, HeadChecksum(body), &body);
  AppendMessageField(kCredit, body, &message);
  return message;
}

std::string EncodeFrameHead(const LinkFrame& frame) {
  std::string body = FrameBody(frame);
  AppendFixed32Field(kHeadCrc, HeadChecksum(body), &body);
  if (frame.data_bytes > 0) AppendBytesHead(kData, frame.data_bytes, &body);
  std::string message;
  message.reserve(body.size() + 16);
  AppendBytesHead(kFrame, body.size() + frame.data_bytes, &message);
  message += body;
  return message;
}

absl::StatusOr<LinkMessage> DecodeLinkMessage(Pieces pieces) {
  WireReader reader(pieces);
  std::optional<LinkMessage> message;
  while (!reader.AtEnd()) {
    ASSIGN_OR_RETURN(const WireTag tag, reader.ReadTag());
    if (tag.field != kHello && tag.field != kCredit && tag.field != kFrame) {
      RETURN_IF_ERROR(reader.Skip(tag));
      continue;
    }
    RETURN_IF_ERROR(CheckWireType(tag, WireType::kBytes));
    ASSIGN_OR_RETURN(const WireReader body, reader.ReadMessage());
    if (tag.field == kHello) {
      ASSIGN_OR_RETURN(message, DecodeHello(body));
    } else if (tag.field == kCredit) {
      ASSIGN_OR_RETURN(message, DecodeCredit(body));
    } else {
      ASSIGN_OR_RETURN(message, DecodeFrame(body));
    }
  }
  if (!message.has_value()) {
    return absl::InvalidArgumentError("link frame: neither hello, credit nor frame");
  }
  return *std::move(message);
}

void CopyPieces(Pieces pieces, uint64_t position, std::span<std::byte> target) {
  size_t done = 0;
  for (const std::span<const std::byte> piece : pieces) {
    if (done == target.size()) return;
    if (position >= piece.size()) {
      position -= piece.size();
      continue;
    }
    const size_t part = std::min<size_t>(piece.size() - position, target.size() - done);
    std::memcpy(target.data() + done, piece.data() + position, part);
    done += part;
    position = 0;
  }
  CHECK_EQ(done, target.size()) << "the decoder checked that the payload is there";
}

}  // namespace stagecoach
