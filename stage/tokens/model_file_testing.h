// ModelFileText: a SentencePiece model file made by hand, for tests; it need not be a good one.
#ifndef STAGECOACH_STAGE_TOKENS_MODEL_FILE_TESTING_H_
#define STAGECOACH_STAGE_TOKENS_MODEL_FILE_TESTING_H_

#include <bit>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "stage/tokens/sentence_piece/model_file.h"

namespace stagecoach {

inline std::string WireVarint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes.push_back(static_cast<char>(value | 0x80));
  bytes.push_back(static_cast<char>(value));
  return bytes;
}
inline std::string WireNumber(uint32_t field, uint64_t value) {
  return WireVarint(field << 3) + WireVarint(value);
}
inline std::string WireBytes(uint32_t field, const std::string& bytes) {
  return WireVarint(field << 3 | 2) + WireVarint(bytes.size()) + bytes;
}
inline std::string WireFloat(uint32_t field, float value) {
  std::string bytes = WireVarint(field << 3 | 5);
  const auto bits = std::bit_cast<uint32_t>(value);
  for (int i = 0; i < 4; ++i) bytes.push_back(static_cast<char>(bits >> (8 * i)));
  return bytes;
}

inline std::string WirePiece(const Piece& piece) {
  return WireBytes(1, WireBytes(1, piece.text) + WireFloat(2, piece.score) +
                          WireNumber(3, static_cast<uint64_t>(piece.type)));
}

// pad 0, unknown 1, begin 2, end 3, then `more`.
inline std::vector<Piece> UsualPieces(std::vector<Piece> more) {
  std::vector<Piece> pieces = {{"<pad>", 0, PieceType::kControl},
                               {"<unk>", 0, PieceType::kUnknown},
                               {"<s>", 0, PieceType::kControl},
                               {"</s>", 0, PieceType::kControl}};
  for (Piece& piece : more) pieces.push_back(std::move(piece));
  return pieces;
}

// Every printable character of ASCII but the space, and the mark of one: ids from 4 on.
inline std::vector<Piece> LetterPieces() {
  std::vector<Piece> pieces = {{"\u2581", -1}};
  for (char c = '!'; c <= '~'; ++c) pieces.push_back({std::string(1, c), -2});
  return UsualPieces(std::move(pieces));
}

inline std::vector<Piece> BytePieces() {
  std::vector<Piece> pieces;
  for (int byte = 0; byte < 256; ++byte) {
    pieces.push_back({absl::StrFormat("<0x%02X>", byte), 0, PieceType::kByte});
  }
  return UsualPieces(std::move(pieces));
}

// trainer, rules: fields of the parts TrainerSpec and NormalizerSpec.
inline std::string ModelFileText(const std::vector<Piece>& pieces, const std::string& trainer = "",
                                 const std::string& rules = "") {
  std::string bytes;
  for (const Piece& piece : pieces) bytes += WirePiece(piece);
  return bytes + WireBytes(2, trainer) + WireBytes(3, rules);
}

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_TOKENS_MODEL_FILE_TESTING_H_
