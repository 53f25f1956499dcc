#include "stage/tokens/byte_level/byte_characters.h"

#include <unicode/utf8.h>

#include <array>
#include <cstdint>

#include "stage/tokens/model/tokenizer_model.h"

namespace stagecoach {
namespace {

struct ByteTables {
  std::array<std::string, 256> character;        // of a byte, UTF-8
  std::array<int16_t, kByteCharactersEnd> byte;  // of a character; -1: none
};

ByteTables MakeByteTables() {
  ByteTables tables;
  tables.byte.fill(-1);
  int next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    const bool itself = (byte >= 33 && byte <= 126) || (byte >= 161 && byte != 173);
    const int character = itself ? byte : next++;
    tables.byte[static_cast<size_t>(character)] = static_cast<int16_t>(byte);
    std::string& text = tables.character[static_cast<size_t>(byte)];
    if (character < 0x80) {
      text = static_cast<char>(character);
    } else {
      text = {static_cast<char>(0xc0 | character >> 6), static_cast<char>(0x80 | (character & 63))};
    }
  }
  return tables;
}

const ByteTables& Tables() {
  static const auto* const tables = new ByteTables(MakeByteTables());
  return *tables;
}

}  // namespace

void AppendByteCharacters(std::string_view bytes, std::string* text) {
  const ByteTables& tables = Tables();
  for (const char byte : bytes) text->append(tables.character[static_cast<uint8_t>(byte)]);
}

void AppendBytesOfPiece(std::string_view piece, std::string* bytes) {
  const ByteTables& tables = Tables();
  const size_t before = bytes->size();
  const auto size = static_cast<int32_t>(piece.size());
  for (int32_t i = 0; i < size;) {
    UChar32 character = 0;
    U8_NEXT(piece.data(), i, size, character);
    const bool known = character >= 0 && character < kByteCharactersEnd;
    const int16_t byte = known ? tables.byte[static_cast<size_t>(character)] : int16_t{-1};
    if (byte < 0) {
      bytes->resize(before);
      bytes->append(piece);
      return;
    }
    bytes->push_back(static_cast<char>(byte));
  }
}

std::string TextOfBytes(std::string_view bytes) {
  std::string text;
  for (size_t at = 0; at < bytes.size();) {
    const std::string_view left = bytes.substr(at, 4);
    const auto size = static_cast<int32_t>(left.size());
    int32_t count = 0;
    UChar32 character = 0;
    U8_NEXT(left.data(), count, size, character);
    text.append(character < 0 ? kReplacementCharacter : left.substr(0, static_cast<size_t>(count)));
    at += static_cast<size_t>(count);
  }
  return text;
}

}  // namespace stagecoach
