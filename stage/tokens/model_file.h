// ModelFile: the content of a SentencePiece model file (sentencepiece_model.proto), checked.
// Errors: DATA_LOSS: no model, or a damaged one; UNIMPLEMENTED: a model with parts that the
//         tokenizer here does not have. Without the file's name, which the caller puts in front.
// Threads: pure functions.
#ifndef STAGECOACH_STAGE_TOKENS_MODEL_FILE_H_
#define STAGECOACH_STAGE_TOKENS_MODEL_FILE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace stagecoach {

enum class TokenizerKind : uint8_t { kUnigram, kBpe };

// Types and numbers as in the file.
enum class PieceType : uint8_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6,
};

struct Piece {
  std::string text;  // UTF-8, not empty
  float score = 0;   // finite
  PieceType type = PieceType::kNormal;
};

struct NormalizerRules {
  std::string name;
  std::string characters;  // the compiled rules (normalizer.h); may be empty
  bool add_dummy_prefix = true;
  bool remove_extra_spaces = true;
  bool escape_spaces = true;
  bool space_is_suffix = false;
};

struct ModelFile {
  TokenizerKind kind = TokenizerKind::kUnigram;
  std::vector<Piece> pieces;  // by id; no two have the same text
  bool byte_fallback = false;
  int32_t unknown = -1;                    // its id
  int32_t begin = -1, end = -1, pad = -1;  // ids; -1: none
  std::string unknown_text;                // what an unknown piece decodes to
  NormalizerRules rules;
  std::vector<int32_t> byte_ids;  // 256 with byte_fallback, else none
};

inline constexpr size_t kMostPieces = size_t{1} << 20;
inline constexpr size_t kMostPieceBytes = 8000;

absl::StatusOr<ModelFile> ParseModelFile(std::string_view bytes);

// "<0x0A>" is byte 10; -1: no such name.
int ByteOfPiece(std::string_view piece);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_TOKENS_MODEL_FILE_H_
