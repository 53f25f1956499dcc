// Piece: what an id of a tokenizer stands for.
#ifndef STAGECOACH_STAGE_TOKENS_MODEL_PIECE_H_
#define STAGECOACH_STAGE_TOKENS_MODEL_PIECE_H_

#include <cstddef>
#include <cstdint>
#include <string>

namespace stagecoach {

// Types and numbers as in a SentencePiece model file.
enum class PieceType : uint8_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6,
};

struct Piece {
  std::string text;  // UTF-8, as in the tokenizer's file; empty only if the file has no such id
  float score = 0;   // finite
  PieceType type = PieceType::kNormal;
};

inline constexpr size_t kMostPieces = size_t{1} << 20;
inline constexpr size_t kMostPieceBytes = 8000;

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_TOKENS_MODEL_PIECE_H_
