// The little of protobuf's wire format that frames need: appending fields to a string, and a reader
// over bytes that arrived in pieces.
// Errors:    the reader returns DATA_LOSS for bytes that end too early or make no sense.
#ifndef STAGECOACH_STAGE_LINK_GRPC_WIRE_H_
#define STAGECOACH_STAGE_LINK_GRPC_WIRE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "absl/status/statusor.h"

namespace stagecoach {

enum class WireType { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

struct WireTag {
  int field = 0;
  WireType type = WireType::kVarint;
};

// As protobuf's generated classes do in proto3, fields with the value 0 or "" are left out.
void AppendVarint(uint64_t value, std::string* target);
void AppendVarintField(int field, uint64_t value, std::string* target);
void AppendFixed32Field(int field, uint32_t value, std::string* target);
void AppendBytesField(int field, const std::string& value, std::string* target);
void AppendMessageField(int field, const std::string& value, std::string* target);  // also if empty
void AppendBytesHead(int field, uint64_t bytes, std::string* target);  // tag and length only

// WireReader: a cursor over [begin, end) of the concatenated pieces. Copies are cheap.
class WireReader {
 public:
  explicit WireReader(std::span<const std::span<const std::byte>> pieces);

  bool AtEnd() const { return position_ == end_; }
  uint64_t position() const { return position_; }
  uint64_t remaining() const { return end_ - position_; }

  absl::StatusOr<WireTag> ReadTag();
  absl::StatusOr<uint64_t> ReadVarint();
  absl::StatusOr<uint64_t> ReadFixed32();
  absl::StatusOr<WireReader> ReadMessage();  // a length and that many bytes, skipped here
  absl::StatusOr<std::string> ReadString(size_t max_bytes);
  absl::Status Skip(const WireTag& tag);

 private:
  std::byte Next();              // one byte; remaining() > 0
  void Advance(uint64_t bytes);  // bytes <= remaining()

  std::span<const std::span<const std::byte>> pieces_;
  size_t piece_ = 0;       // the one that holds position_
  uint64_t in_piece_ = 0;  // offset in it
  uint64_t position_ = 0;
  uint64_t end_ = 0;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_LINK_GRPC_WIRE_H_
