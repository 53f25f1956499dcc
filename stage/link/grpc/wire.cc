#include "stage/link/grpc/wire.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace stagecoach {
namespace {

absl::Status EndsEarly() {
  return absl::DataLossError("link frame: ends in the middle of a field");
}

void AppendTag(int field, WireType type, std::string* target) {
  AppendVarint(static_cast<uint64_t>(field) << 3 | static_cast<uint64_t>(type), target);
}

}  // namespace

void AppendVarint(uint64_t value, std::string* target) {
  while (value >= 0x80) {
    target->push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  target->push_back(static_cast<char>(value));
}

void AppendVarintField(int field, uint64_t value, std::string* target) {
  if (value == 0) return;
  AppendTag(field, WireType::kVarint, target);
  AppendVarint(value, target);
}

void AppendFixed32Field(int field, uint32_t value, std::string* target) {
  if (value == 0) return;
  AppendTag(field, WireType::kFixed32, target);
  for (int shift = 0; shift < 32; shift += 8) target->push_back(static_cast<char>(value >> shift));
}

void AppendBytesHead(int field, uint64_t bytes, std::string* target) {
  AppendTag(field, WireType::kBytes, target);
  AppendVarint(bytes, target);
}

void AppendMessageField(int field, const std::string& value, std::string* target) {
  AppendBytesHead(field, value.size(), target);
  *target += value;
}

void AppendBytesField(int field, const std::string& value, std::string* target) {
  if (!value.empty()) AppendMessageField(field, value, target);
}

WireReader::WireReader(std::span<const std::span<const std::byte>> pieces) : pieces_(pieces) {
  for (const auto piece : pieces) end_ += piece.size();
}

std::byte WireReader::Next() {
  while (in_piece_ == pieces_[piece_].size()) {
    ++piece_;
    in_piece_ = 0;
  }
  ++position_;
  return pieces_[piece_][in_piece_++];
}

void WireReader::Advance(uint64_t bytes) {
  position_ += bytes;
  while (bytes > 0) {
    const uint64_t left = pieces_[piece_].size() - in_piece_;
    const uint64_t part = std::min(bytes, left);
    in_piece_ += part;
    bytes -= part;
    if (bytes > 0) {
      ++piece_;
      in_piece_ = 0;
    }
  }
}

absl::StatusOr<uint64_t> WireReader::ReadVarint() {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (AtEnd()) return EndsEarly();
    const auto byte = static_cast<uint64_t>(Next());
    value |= (byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  return absl::DataLossError("link frame: a number longer than 10 bytes");
}

absl::StatusOr<WireTag> WireReader::ReadTag() {
  ASSIGN_OR_RETURN(const uint64_t tag, ReadVarint());
  const uint64_t field = tag >> 3, type = tag & 7;
  if (field == 0 || field >= (1u << 29) || type == 3 || type == 4 || type > 5) {
    return absl::DataLossError(absl::StrCat("link frame: tag ", tag, " is none"));
  }
  return WireTag{static_cast<int>(field), static_cast<WireType>(type)};
}

absl::StatusOr<uint64_t> WireReader::ReadFixed32() {
  if (remaining() < 4) return EndsEarly();
  uint64_t value = 0;
  for (int shift = 0; shift < 32; shift += 8) value |= static_cast<uint64_t>(Next()) << shift;
  return value;
}

absl::StatusOr<WireReader> WireReader::ReadMessage() {
  ASSIGN_OR_RETURN(const uint64_t bytes, ReadVarint());
  if (bytes > remaining()) return EndsEarly();
  WireReader message = *this;
  message.end_ = position_ + bytes;
  Advance(bytes);
  return message;
}

absl::StatusOr<std::string> WireReader::ReadString(size_t max_bytes) {
  ASSIGN_OR_RETURN(WireReader message, ReadMessage());
  if (message.remaining() > max_bytes) {
    return absl::DataLossError(absl::StrCat("link frame: a string of ", message.remaining(),
                                            " bytes, want at most ", max_bytes));
  }
  std::string text;
  text.reserve(message.remaining());
  while (!message.AtEnd()) text.push_back(static_cast<char>(message.Next()));
  return text;
}

absl::Status WireReader::Skip(const WireTag& tag) {
  uint64_t bytes = 0;
  switch (tag.type) {
    case WireType::kVarint:
      return ReadVarint().status();
    case WireType::kBytes:
      return ReadMessage().status();
    case WireType::kFixed64:
      bytes = 8;
      break;
    case WireType::kFixed32:
      bytes = 4;
      break;
  }
  if (bytes > remaining()) return EndsEarly();
  Advance(bytes);
  return absl::OkStatus();
}

}  // namespace stagecoach
