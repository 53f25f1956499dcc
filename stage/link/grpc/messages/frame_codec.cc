#include "stage/link/grpc/messages/frame_codec.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/unknown_field_set.h>
#include <google/protobuf/wire_format_lite.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/errors/status.h"
#include "base/files/hash.h"
#include "network/limits.h"
#include "stagecoach/v1/link.pb.h"

namespace stagecoach {

static_assert(kMaxTensorsPerMessage == kMaxCutValues, "what may cross a cut fits a message");

namespace {

using google::protobuf::MessageLite;
using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;
using google::protobuf::io::CodedOutputStream;
using Envelope = v1::ExchangeRequest;

// Far above a head with the longest job and shape.
constexpr uint64_t kMaxHeadBytes = 1024;
constexpr uint64_t kMaxCapacity = 1 << 20;
// 16 GiB: far above any activation, low enough that offsets and sums cannot overflow.
constexpr uint64_t kMaxTensorBytes = uint64_t{1} << 34;

uint32_t ChecksumOf(const std::string& head) {
  return Crc32c(std::as_bytes(std::span<const char>(head)));
}

// The tag and the length of a field of so many bytes.
void AppendFieldHead(int field, uint64_t bytes, std::string* target) {
  google::protobuf::io::StringOutputStream stream(target);
  CodedOutputStream out(&stream);
  out.WriteTag(WireFormatLite::MakeTag(field, WireFormatLite::WIRETYPE_LENGTH_DELIMITED));
  out.WriteVarint64(bytes);
}

std::string Sealed(int field, auto message) {
  message.set_crc32c(ChecksumOf(message.SerializeAsString()));
  std::string text;
  AppendFieldHead(field, message.ByteSizeLong(), &text);
  message.AppendToString(&text);
  return text;
}

absl::Status Bad(const char* field, uint64_t value, const char* want) {
  return absl::InvalidArgumentError(
      absl::StrCat("link frame: ", field, "=", value, ", want ", want));
}

absl::Status NoMessage(const char* why) {
  return absl::DataLossError(absl::StrCat("link frame: ", why));
}

absl::Status EndsEarly() { return NoMessage("ends in the middle of a field"); }

// Before any number is looked at: a wrong one is damage then, and no fault of the peer.
absl::Status CheckChecksum(const char* of, const MessageLite& head, uint32_t sent) {
  const std::string text = head.SerializeAsString();
  // A flipped bit can make an unknown field of all that there is, and nothing has the checksum 0.
  if (text.empty()) return absl::DataLossError(absl::StrCat("link frame: the ", of, " is empty"));
  if (const uint32_t own = ChecksumOf(text); own != sent) {
    return absl::DataLossError(
        absl::StrCat("link frame: the ", of, " has CRC-32C ", own, ", sent with ", sent));
  }
  return absl::OkStatus();
}

// A message of the envelope as it came: all but its data, and where that is.
struct Body {
  std::string head;
  uint64_t data_position = 0, data_bytes = 0;
};

absl::Status AppendToHead(Pieces pieces, int first, int last, std::string* head) {
  const size_t size = head->size(), more = static_cast<size_t>(last - first);
  if (size + more > kMaxHeadBytes) return NoMessage("a head without an end");
  head->resize(size + more);
  CopyPieces(pieces, static_cast<uint64_t>(first),
             std::as_writable_bytes(std::span(*head).subspan(size)));
  return absl::OkStatus();
}

absl::StatusOr<Body> ReadBody(Pieces pieces, CodedInputStream& in) {
  constexpr uint32_t kDataTag = WireFormatLite::MakeTag(v1::Frame::kDataFieldNumber,
                                                        WireFormatLite::WIRETYPE_LENGTH_DELIMITED);
  Body body;
  int bytes = 0, data_bytes = 0;
  if (!in.ReadVarintSizeAsInt(&bytes)) return EndsEarly();
  int taken = in.CurrentPosition(), here = taken;
  const int64_t end = int64_t{here} + bytes;
  const CodedInputStream::Limit limit = in.PushLimit(bytes);
  while (const uint32_t tag = in.ReadTag()) {
    if (tag != kDataTag) {
      if (!WireFormatLite::SkipField(&in, tag)) return EndsEarly();
      here = in.CurrentPosition();
      continue;
    }
    RETURN_IF_ERROR(AppendToHead(pieces, taken, here, &body.head));
    if (!in.ReadVarintSizeAsInt(&data_bytes)) return EndsEarly();
    body.data_position = static_cast<uint64_t>(in.CurrentPosition());
    body.data_bytes = static_cast<uint64_t>(data_bytes);
    if (!in.Skip(data_bytes)) return EndsEarly();
    taken = here = in.CurrentPosition();
  }
  if (here != end) return EndsEarly();
  in.PopLimit(limit);
  RETURN_IF_ERROR(AppendToHead(pieces, taken, here, &body.head));
  return body;
}

// Without the fields that only a newer peer knows.
template <typename Message>
absl::StatusOr<Message> Parsed(const Body& body) {
  Message message;
  if (!message.ParseFromString(body.head)) return NoMessage("no fields of a message");
  const auto& unknown = message.GetReflection()->GetUnknownFields(message);
  for (int i = 0; i < unknown.field_count(); ++i) {
    if (Message::descriptor()->FindFieldByNumber(unknown.field(i).number()) != nullptr) {
      return NoMessage("a field of another type");
    }
  }
  if (!unknown.empty()) message.DiscardUnknownFields();
  return message;
}

absl::StatusOr<LinkHello> DecodeHello(const Body& body) {
  ASSIGN_OR_RETURN(v1::Hello hello, Parsed<v1::Hello>(body));
  const v1::Fence& fence = hello.fence();
  const uint32_t sent = hello.crc32c();
  hello.clear_crc32c();
  // A peer of another protocol may have no such checksum. It is told so, and not of wrong bits.
  if (sent != 0 || hello.protocol() == kLinkProtocol) {
    RETURN_IF_ERROR(CheckChecksum("hello", hello, sent));
  }
  if (hello.upstream() < 0 || hello.upstream() == std::numeric_limits<int32_t>::max()) {
    return Bad("hello.upstream", hello.upstream(), "the index of a cell");
  }
  if (hello.capacity() == 0 || hello.capacity() > kMaxCapacity) {
    return Bad("hello.capacity", hello.capacity(), "1 to 2^20");
  }
  return LinkHello{{fence.job(), fence.term(), fence.generation(), CellId(hello.upstream())},
                   hello.protocol(),
                   hello.capacity()};
}

absl::StatusOr<LinkCredit> DecodeCredit(const Body& body) {
  ASSIGN_OR_RETURN(v1::Credit credit, Parsed<v1::Credit>(body));
  const uint32_t sent = credit.crc32c();
  credit.clear_crc32c();
  RETURN_IF_ERROR(CheckChecksum("credit", credit, sent));
  return LinkCredit{credit.taken(), credit.round()};
}

absl::StatusOr<LinkRepeat> DecodeRepeat(const Body& body) {
  ASSIGN_OR_RETURN(v1::Repeat repeat, Parsed<v1::Repeat>(body));
  const uint32_t sent = repeat.crc32c();
  repeat.clear_crc32c();
  RETURN_IF_ERROR(CheckChecksum("repeat", repeat, sent));
  if (repeat.round() == 0) return Bad("repeat.round", 0, "1 to 2^32 - 1");
  return LinkRepeat{repeat.round(), repeat.next()};
}

absl::Status CheckRanges(const v1::Frame& head) {
  if (head.kind() < 1 || head.kind() > 5) {
    return Bad("kind", static_cast<uint64_t>(head.kind()), "1 to 5");
  }
  if (head.micro_batch() >= std::numeric_limits<int32_t>::max()) {
    return Bad("micro_batch", head.micro_batch(), "the index of a micro-batch");
  }
  if (head.tensor_count() == 0 || head.tensor_count() > kMaxTensorsPerMessage) {
    return Bad("tensor_count", head.tensor_count(), "1 to 64");
  }
  if (head.tensor_index() >= head.tensor_count()) {
    return Bad("tensor_index", head.tensor_index(), "less than tensor_count");
  }
  if (head.dtype() < static_cast<uint32_t>(DType::kF32) ||
      head.dtype() > static_cast<uint32_t>(DType::kI64)) {
    return Bad("dtype", head.dtype(), "1 to 6");
  }
  if (head.shape_size() > Shape::kMaxRank) {
    return Bad("shape", static_cast<uint64_t>(head.shape_size()), "at most 8 extents");
  }
  return absl::OkStatus();
}

absl::StatusOr<LinkFrame> DecodeFrame(const Body& body) {
  ASSIGN_OR_RETURN(v1::Frame head, Parsed<v1::Frame>(body));
  const uint32_t sent = head.head_crc32c();
  head.clear_head_crc32c();
  RETURN_IF_ERROR(CheckChecksum("head", head, sent));
  RETURN_IF_ERROR(CheckRanges(head));
  LinkFrame frame{.term = head.term(),
                  .generation = head.generation(),
                  .step = head.step(),
                  .attempt = head.attempt(),
                  .kind = static_cast<MessageKind>(head.kind()),
                  .micro_batch = head.micro_batch(),
                  .tensor_index = head.tensor_index(),
                  .tensor_count = head.tensor_count(),
                  .dtype = static_cast<DType>(head.dtype()),
                  .shape = {head.shape().begin(), head.shape().end()},
                  .offset = head.offset(),
                  .sent_unix_nanos = head.sent_unix_nanos(),
                  .crc32c = head.crc32c(),
                  .data_bytes = body.data_bytes,
                  .data_position = body.data_position};
  ASSIGN_OR_RETURN(const int64_t elements, CheckedElements(frame.shape));
  const uint64_t element_bytes = static_cast<uint64_t>(DTypeSize(frame.dtype));
  if (static_cast<uint64_t>(elements) > kMaxTensorBytes / element_bytes) {
    return Bad("shape", static_cast<uint64_t>(elements), "at most 2^34 bytes");
  }
  frame.tensor_bytes = static_cast<uint64_t>(elements) * element_bytes;
  if (frame.offset > frame.tensor_bytes || frame.data_bytes > frame.tensor_bytes - frame.offset) {
    return Bad("offset", frame.offset, "a chunk inside its tensor");
  }
  return frame;
}

absl::StatusOr<LinkMessage> DecodeBody(int field, const Body& body) {
  switch (field) {
    case Envelope::kHello:
      return DecodeHello(body);
    case Envelope::kCredit:
      return DecodeCredit(body);
    case Envelope::kRepeat:
      return DecodeRepeat(body);
    default:
      return DecodeFrame(body);
  }
}

}  // namespace

std::string EncodeHello(const LinkHello& hello) {
  v1::Hello message;
  message.mutable_fence()->set_job(hello.boundary.job);
  message.mutable_fence()->set_term(hello.boundary.term);
  message.mutable_fence()->set_generation(hello.boundary.generation);
  message.set_upstream(hello.boundary.above.value);
  message.set_protocol(hello.protocol);
  message.set_capacity(hello.capacity);
  return Sealed(Envelope::kHello, message);
}

std::string EncodeCredit(const LinkCredit& credit) {
  v1::Credit message;
  message.set_taken(credit.taken);
  message.set_round(credit.round);
  return Sealed(Envelope::kCredit, message);
}

std::string EncodeRepeat(const LinkRepeat& repeat) {
  v1::Repeat message;
  message.set_round(repeat.round);
  message.set_next(repeat.next);
  return Sealed(Envelope::kRepeat, message);
}

std::string EncodeFrameHead(const LinkFrame& frame) {
  v1::Frame message;
  message.set_term(frame.term);
  message.set_generation(frame.generation);
  message.set_step(frame.step);
  message.set_attempt(frame.attempt);
  message.set_kind(static_cast<v1::TensorKind>(frame.kind));
  message.set_micro_batch(frame.micro_batch);
  message.set_tensor_index(frame.tensor_index);
  message.set_tensor_count(frame.tensor_count);
  message.set_dtype(static_cast<uint32_t>(frame.dtype));
  message.mutable_shape()->Assign(frame.shape.begin(), frame.shape.end());
  message.set_offset(frame.offset);
  message.set_sent_unix_nanos(frame.sent_unix_nanos);
  message.set_crc32c(frame.crc32c);
  message.set_head_crc32c(ChecksumOf(message.SerializeAsString()));
  std::string head = message.SerializeAsString();
  if (frame.data_bytes > 0) AppendFieldHead(v1::Frame::kDataFieldNumber, frame.data_bytes, &head);
  std::string text;
  AppendFieldHead(Envelope::kFrame, head.size() + frame.data_bytes, &text);
  return text + head;
}

absl::StatusOr<LinkMessage> DecodeLinkMessage(Pieces pieces) {
  std::deque<google::protobuf::io::ArrayInputStream> arrays;
  std::vector<google::protobuf::io::ZeroCopyInputStream*> streams;
  for (const std::span<const std::byte> piece : pieces) {
    streams.push_back(&arrays.emplace_back(piece.data(), static_cast<int>(piece.size())));
  }
  google::protobuf::io::ConcatenatingInputStream stream(streams.data(),
                                                        static_cast<int>(streams.size()));
  CodedInputStream in(&stream);
  std::optional<LinkMessage> message;
  while (const uint32_t tag = in.ReadTag()) {
    const int field = WireFormatLite::GetTagFieldNumber(tag);
    if (field < Envelope::kHello || field > Envelope::kRepeat) {
      if (!WireFormatLite::SkipField(&in, tag)) return NoMessage("no field");
      continue;
    }
    if (WireFormatLite::GetTagWireType(tag) != WireFormatLite::WIRETYPE_LENGTH_DELIMITED) {
      return NoMessage("a message without a length");
    }
    ASSIGN_OR_RETURN(const Body body, ReadBody(pieces, in));
    ASSIGN_OR_RETURN(message, DecodeBody(field, body));
  }
  if (!message.has_value() || !in.ConsumedEntireMessage()) {
    return NoMessage("neither hello, credit, frame nor repeat");
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
