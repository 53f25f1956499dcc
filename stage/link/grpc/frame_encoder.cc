#include <span>

#include "base/hash.h"
#include "stage/link/grpc/frame_bodies.h"
#include "stage/link/grpc/frame_codec.h"
#include "stage/link/grpc/wire.h"

namespace stagecoach {
namespace link_fields {
namespace {

void AppendNumbers(const auto& numbers, int first, int last, std::string* body) {
  for (int field = first; field <= last; ++field) {
    AppendVarintField(field, numbers[static_cast<size_t>(field)], body);
  }
}

}  // namespace

std::string HelloBody(const BoundaryId& boundary, const Numbers<kHelloCrc>& numbers) {
  std::string fence, body;
  AppendBytesField(kFenceJob, boundary.job, &fence);
  AppendVarintField(kFenceTerm, boundary.term, &fence);
  AppendVarintField(kFenceGeneration, boundary.generation, &fence);
  AppendMessageField(kHelloFence, fence, &body);
  AppendNumbers(numbers, kUpstream, kCapacity, &body);
  return body;
}

std::string CreditBody(const Numbers<kCreditCrc>& numbers) {
  std::string body;
  AppendNumbers(numbers, kTaken, kCreditRound, &body);
  return body;
}

std::string RepeatBody(const Numbers<kRepeatCrc>& numbers) {
  std::string body;
  AppendNumbers(numbers, kRepeatRound, kNext, &body);
  return body;
}

std::string FrameBody(const Numbers<kData>& numbers, const std::vector<int64_t>& shape) {
  std::string body;
  body.reserve(128);
  AppendNumbers(numbers, kTerm, kDType, &body);
  if (!shape.empty()) {
    std::string extents;
    for (const int64_t extent : shape) AppendVarint(static_cast<uint64_t>(extent), &extents);
    AppendMessageField(kShape, extents, &body);
  }
  AppendNumbers(numbers, kOffset, kSent, &body);
  AppendFixed32Field(kCrc, static_cast<uint32_t>(numbers[kCrc]), &body);
  return body;
}

uint32_t HeadChecksum(const std::string& head) {
  return Crc32c(std::as_bytes(std::span<const char>(head.data(), head.size())));
}

}  // namespace link_fields

using namespace link_fields;

namespace {

// With its checksum, the last field of each, in its envelope.
std::string Sealed(Envelope kind, int checksum, std::string body) {
  AppendFixed32Field(checksum, HeadChecksum(body), &body);
  std::string message;
  AppendMessageField(kind, body, &message);
  return message;
}

}  // namespace

std::string EncodeHello(const LinkHello& hello) {
  Numbers<kHelloCrc> n{};
  n[kUpstream] = static_cast<uint64_t>(hello.boundary.upstream.value);
  n[kProtocol] = hello.protocol;
  n[kCapacity] = hello.capacity;
  return Sealed(kHello, kHelloCrc, HelloBody(hello.boundary, n));
}

std::string EncodeCredit(const LinkCredit& credit) {
  Numbers<kCreditCrc> n{};
  n[kTaken] = credit.taken;
  n[kCreditRound] = credit.round;
  return Sealed(kCredit, kCreditCrc, CreditBody(n));
}

std::string EncodeRepeat(const LinkRepeat& repeat) {
  Numbers<kRepeatCrc> n{};
  n[kRepeatRound] = repeat.round;
  n[kNext] = repeat.next;
  return Sealed(kRepeat, kRepeatCrc, RepeatBody(n));
}

std::string EncodeFrameHead(const LinkFrame& frame) {
  Numbers<kData> n{};
  n[kTerm] = frame.term;
  n[kGeneration] = frame.generation;
  n[kStep] = frame.step;
  n[kAttempt] = frame.attempt;
  n[kKind] = static_cast<uint64_t>(frame.kind);
  n[kMicroBatch] = frame.micro_batch;
  n[kTensorIndex] = frame.tensor_index;
  n[kTensorCount] = frame.tensor_count;
  n[kDType] = static_cast<uint64_t>(frame.dtype);
  n[kOffset] = frame.offset;
  n[kSent] = static_cast<uint64_t>(frame.sent_unix_nanos);
  n[kCrc] = frame.crc32c;
  std::string body = FrameBody(n, frame.shape);
  AppendFixed32Field(kHeadCrc, HeadChecksum(body), &body);
  if (frame.data_bytes > 0) AppendBytesHead(kData, frame.data_bytes, &body);
  std::string message;
  message.reserve(body.size() + 16);
  AppendBytesHead(kFrame, body.size() + frame.data_bytes, &message);
  message += body;
  return message;
}

}  // namespace stagecoach
