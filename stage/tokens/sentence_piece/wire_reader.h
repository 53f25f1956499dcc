// WireReader: the fields of one message in protobuf's wire format, without protobuf. A tokenizer's
// file is read with it where no protobuf is linked, and nothing in the file is trusted.
// Ownership: borrows the bytes.  Threads: thread-compatible.
// Errors:    DATA_LOSS: the bytes end within a field, or are no wire format.
#ifndef STAGECOACH_STAGE_TOKENS_SENTENCE_PIECE_WIRE_READER_H_
#define STAGECOACH_STAGE_TOKENS_SENTENCE_PIECE_WIRE_READER_H_

#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"

namespace stagecoach {

class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : left_(bytes) {}

  struct Field {
    enum class Kind : uint8_t { kVarint, kFixed64, kBytes, kFixed32 };
    uint32_t number = 0;
    Kind kind = Kind::kVarint;
    uint64_t value = 0;      // of numbers
    std::string_view bytes;  // of kBytes

    bool Is(uint32_t wanted, Kind wanted_kind) const {
      return number == wanted && kind == wanted_kind;
    }
    float AsFloat() const;  // of kFixed32
  };
  bool done() const { return left_.empty(); }
  absl::StatusOr<Field> Next();  // not when done

 private:
  absl::StatusOr<uint64_t> Varint();
  absl::StatusOr<uint64_t> Fixed(size_t bytes);

  std::string_view left_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_TOKENS_SENTENCE_PIECE_WIRE_READER_H_
