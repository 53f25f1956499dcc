// Byte characters: byte-level BPE writes each byte of a text as a character that can be seen, so
// that pieces are texts. Bytes 33 to 126, 161 to 172 and 174 to 255 are the characters of these
// numbers, the others those from U+0100 on: a space is U+0120.
// Threads: pure functions.
#ifndef STAGECOACH_STAGE_TOKENS_BYTE_LEVEL_BYTE_CHARACTERS_H_
#define STAGECOACH_STAGE_TOKENS_BYTE_LEVEL_BYTE_CHARACTERS_H_

#include <string>
#include <string_view>

namespace stagecoach {

inline constexpr int kByteCharactersEnd = 0x144;  // behind the greatest one

void AppendByteCharacters(std::string_view bytes, std::string* text);

// The bytes of a piece. One with another character in it stands for itself, as special tokens do.
void AppendBytesOfPiece(std::string_view piece, std::string* bytes);

// Bytes as text. Where no character goes on, the bytes of one that began become one U+FFFD.
std::string TextOfBytes(std::string_view bytes);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_TOKENS_BYTE_LEVEL_BYTE_CHARACTERS_H_
