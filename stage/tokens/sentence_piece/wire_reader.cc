#include "stage/tokens/sentence_piece/wire_reader.h"

#include <bit>

#include "base/errors/status.h"

namespace stagecoach {
namespace {

absl::Status EndsEarly() { return absl::DataLossError("it ends within a field"); }

}  // namespace

float WireReader::Field::AsFloat() const {
  return std::bit_cast<float>(static_cast<uint32_t>(value));
}

absl::StatusOr<uint64_t> WireReader::Varint() {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (left_.empty()) return EndsEarly();
    const auto byte = static_cast<uint8_t>(left_.front());
    left_.remove_prefix(1);
    value |= uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return value;
  }
  return absl::DataLossError("a number has more than 64 bits");
}

absl::StatusOr<uint64_t> WireReader::Fixed(size_t bytes) {
  if (left_.size() < bytes) return EndsEarly();
  uint64_t value = 0;
  for (size_t i = 0; i < bytes; ++i) {
    value |= uint64_t{static_cast<uint8_t>(left_[i])} << (8 * i);
  }
  left_.remove_prefix(bytes);
  return value;
}

absl::StatusOr<WireReader::Field> WireReader::Next() {
  ASSIGN_OR_RETURN(const uint64_t tag, Varint());
  if (tag >> 3 == 0 || tag >> 3 > (uint64_t{1} << 29) - 1) {
    return absl::DataLossError("a field has no number");
  }
  Field field{.number = static_cast<uint32_t>(tag >> 3)};
  switch (tag & 7) {
    case 0: {
      ASSIGN_OR_RETURN(field.value, Varint());
      return field;
    }
    case 1: {
      field.kind = Field::Kind::kFixed64;
      ASSIGN_OR_RETURN(field.value, Fixed(8));
      return field;
    }
    case 2: {
      field.kind = Field::Kind::kBytes;
      ASSIGN_OR_RETURN(const uint64_t size, Varint());
      if (size > left_.size()) return EndsEarly();
      field.bytes = left_.substr(0, size);
      left_.remove_prefix(size);
      return field;
    }
    case 5: {
      field.kind = Field::Kind::kFixed32;
      ASSIGN_OR_RETURN(field.value, Fixed(4));
      return field;
    }
    default:
      return absl::DataLossError("a field has an unknown form");
  }
}

}  // namespace stagecoach
