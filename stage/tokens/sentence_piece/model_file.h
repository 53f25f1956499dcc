// ModelFile: the content of a SentencePiece model file (sentencepiece_model.proto), checked.
// Errors: DATA_LOSS: no model, or a damaged one; UNIMPLEMENTED: a model with parts that the
//         tokenizer here does not have. Without the file's name, which the caller puts in front.
// Threads: pure functions.
#ifndef STAGECOACH_STAGE_TOKENS_SENTENCE_PIECE_MODEL_FILE_H_
#define STAGECOACH_STAGE_TOKENS_SENTENCE_PIECE_MODEL_FILE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "stage/tokens/model/piece.h"

namespace stagecoach {

enum class TokenizerKind : uint8_t { kUnigram, kBpe };

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

absl::StatusOr<ModelFile> ParseModelFile(std::string_view bytes);

// "<0x0A>" is byte 10; -1: no such name.
int ByteOfPiece(std::string_view piece);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_TOKENS_SENTENCE_PIECE_MODEL_FILE_H_
