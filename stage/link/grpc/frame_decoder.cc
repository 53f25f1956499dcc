#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status.h"
#include "network/limits.h"
#include "stage/link/grpc/frame_bodies.h"
#include "stage/link/grpc/frame_codec.h"
#include "stage/link/grpc/wire.h"

namespace stagecoach {

static_assert(kMaxTensorsPerMessage == kMaxCutValues, "what may cross a cut fits a message");

namespace {

using namespace link_fields;

constexpr size_t kMaxJobBytes = 256;
constexpr uint64_t kMaxCapacity = 1 << 20;
// 16 GiB: far above any activation, low enough that offsets and sums cannot overflow.
constexpr uint64_t kMaxTensorBytes = uint64_t{1} << 34;

absl::Status Bad(const char* field, uint64_t value, const char* want) {
  return absl::InvalidArgumentError(
      absl::StrCat("link frame: ", field, "=", value, ", want ", want));
}

absl::Status CheckWireType(const WireTag& tag, WireType wanted) {
  if (tag.type == wanted) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("link frame: field ", tag.field, " has wire type ",
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

// Before any number is looked at: a wrong one is damage then, and no fault of the peer.
absl::Status CheckChecksum(const char* of, const std::string& head, uint64_t sent) {
  // No message is. A flipped bit can make an unknown field of all that there is, and nothing has the checksum 0.
  if (head.empty()) return absl::DataLossError(absl::StrCat("link frame: the ", of, " is empty"));
  if (const uint32_t own = HeadChecksum(head); own != sent) {
    return absl::DataLossError(
        absl::StrCat("link frame: the ", of, " has CRC-32C ", own, ", sent with ", sent));
  }
  return absl::OkStatus();
}

// A number, the checksum, or what a newer peer has to say.
absl::Status ReadField(const WireTag& tag, WireReader& reader, int checksum, auto& numbers) {
  if (tag.field >= static_cast<int>(numbers.size())) return reader.Skip(tag);
  uint64_t* const value = &numbers[static_cast<size_t>(tag.field)];
  return tag.field == checksum ? ReadChecksum(tag, reader, value) : ReadNumber(tag, reader, value);
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
  BoundaryId boundary;
  Numbers<kHelloCrc> n{};
  while (!reader.AtEnd()) {
    ASSIGN_OR_RETURN(const WireTag tag, reader.ReadTag());
    if (tag.field == kHelloFence) {
      RETURN_IF_ERROR(CheckWireType(tag, WireType::kBytes));
      ASSIGN_OR_RETURN(const WireReader fence, reader.ReadMessage());
      ASSIGN_OR_RETURN(boundary, DecodeFence(fence));
    } else {
      RETURN_IF_ERROR(ReadField(tag, reader, kHelloCrc, n));
    }
  }
  // A peer of another protocol may have no such checksum: it is told so, and not that its bits are wrong.
  if (n[kHelloCrc] != 0 || n[kProtocol] == kLinkProtocol) {
    RETURN_IF_ERROR(CheckChecksum("hello", HelloBody(boundary, n), n[kHelloCrc]));
  }
  if (n[kUpstream] >= std::numeric_limits<int32_t>::max()) {
    return Bad("hello.upstream", n[kUpstream], "the index of a stage");
  }
  if (n[kProtocol] > std::numeric_limits<uint32_t>::max()) {
    return Bad("hello.protocol", n[kProtocol], "32 bits");
  }
  if (n[kCapacity] == 0 || n[kCapacity] > kMaxCapacity) {
    return Bad("hello.capacity", n[kCapacity], "1 to 2^20");
  }
  boundary.upstream = StageId(static_cast<int32_t>(n[kUpstream]));
  return LinkHello{std::move(boundary), static_cast<uint32_t>(n[kProtocol]),
                   static_cast<uint32_t>(n[kCapacity])};
}

absl::StatusOr<LinkCredit> DecodeCredit(WireReader reader) {
  Numbers<kCreditCrc> n{};
  while (!reader.AtEnd()) {
    ASSIGN_OR_RETURN(const WireTag tag, reader.ReadTag());
    RETURN_IF_ERROR(ReadField(tag, reader, kCreditCrc, n));
  }
  RETURN_IF_ERROR(CheckChecksum("credit", CreditBody(n), n[kCreditCrc]));
  if (n[kCreditRound] > std::numeric_limits<uint32_t>::max()) {
    return Bad("credit.round", n[kCreditRound], "32 bits");
  }
  return LinkCredit{n[kTaken], static_cast<uint32_t>(n[kCreditRound])};
}

absl::StatusOr<LinkRepeat> DecodeRepeat(WireReader reader) {
  Numbers<kRepeatCrc> n{};
  while (!reader.AtEnd()) {
    ASSIGN_OR_RETURN(const WireTag tag, reader.ReadTag());
    RETURN_IF_ERROR(ReadField(tag, reader, kRepeatCrc, n));
  }
  RETURN_IF_ERROR(CheckChecksum("repeat", RepeatBody(n), n[kRepeatCrc]));
  if (n[kRepeatRound] == 0 || n[kRepeatRound] > std::numeric_limits<uint32_t>::max()) {
    return Bad("repeat.round", n[kRepeatRound], "1 to 2^32 - 1");
  }
  return LinkRepeat{static_cast<uint32_t>(n[kRepeatRound]), n[kNext]};
}

// One more than there may be is kept, so that its checksum is looked at before its number.
absl::Status AppendExtent(uint64_t extent, std::vector<int64_t>* shape) {
  if (shape->size() > static_cast<size_t>(Shape::kMaxRank)) {
    return absl::DataLossError("link frame: a shape without an end");
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

// As it came, before ranges are checked.
struct RawFrame {
  Numbers<kData> numbers{};
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
    } else if (tag.field == kCrc) {
      RETURN_IF_ERROR(ReadChecksum(tag, reader, &raw.numbers[kCrc]));
    } else {
      RETURN_IF_ERROR(ReadField(tag, reader, kHeadCrc, raw.numbers));
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
  if (raw.shape.size() > static_cast<size_t>(Shape::kMaxRank)) {
    return Bad("shape", raw.shape.size(), "at most 8 extents");
  }
  return absl::OkStatus();
}

absl::StatusOr<LinkFrame> DecodeFrame(WireReader reader) {
  ASSIGN_OR_RETURN(RawFrame raw, DecodeRawFrame(reader));
  const auto& n = raw.numbers;
  RETURN_IF_ERROR(CheckChecksum("head", FrameBody(n, raw.shape), n[kHeadCrc]));
  RETURN_IF_ERROR(CheckRanges(raw));
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
  return frame;
}

}  // namespace

absl::StatusOr<LinkMessage> DecodeLinkMessage(Pieces pieces) {
  WireReader reader(pieces);
  std::optional<LinkMessage> message;
  while (!reader.AtEnd()) {
    ASSIGN_OR_RETURN(const WireTag tag, reader.ReadTag());
    if (tag.field > kRepeat) {
      RETURN_IF_ERROR(reader.Skip(tag));
      continue;
    }
    RETURN_IF_ERROR(CheckWireType(tag, WireType::kBytes));
    ASSIGN_OR_RETURN(const WireReader body, reader.ReadMessage());
    if (tag.field == kHello) {
      ASSIGN_OR_RETURN(message, DecodeHello(body));
    } else if (tag.field == kCredit) {
      ASSIGN_OR_RETURN(message, DecodeCredit(body));
    } else if (tag.field == kRepeat) {
      ASSIGN_OR_RETURN(message, DecodeRepeat(body));
    } else {
      ASSIGN_OR_RETURN(message, DecodeFrame(body));
    }
  }
  if (!message.has_value()) {
    return absl::DataLossError("link frame: neither hello, credit, frame nor repeat");
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
