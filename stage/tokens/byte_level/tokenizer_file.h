// TokenizerFile: the content of a tokenizer.json, checked: its pieces, merges and added tokens, and
// the steps before them.
// Errors: INVALID_ARGUMENT naming the field, its value and the remedy.
#ifndef STAGECOACH_STAGE_TOKENS_BYTE_LEVEL_TOKENIZER_FILE_H_
#define STAGECOACH_STAGE_TOKENS_BYTE_LEVEL_TOKENIZER_FILE_H_

#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "stage/tokens/byte_level/added_tokens.h"
#include "stage/tokens/byte_level/bpe_merges.h"
#include "stage/tokens/byte_level/pre_tokenizer.h"
#include "stage/tokens/byte_level/special_ids.h"
#include "stage/tokens/byte_level/unicode_normalizer.h"
#include "stage/tokens/model/piece.h"

namespace stagecoach {

struct TokenizerFile {
  std::vector<Piece> pieces;           // by id, added ones too; no two texts are the same
  std::vector<int32_t> in_vocabulary;  // ids of the pieces that the model joins
  std::vector<BpeMerges::Merge> merges;
  BpeRules rules;
  std::vector<AddedToken> added;
  UnicodeNormalizer normalizer;
  PreTokenizer pre_tokenizer;
  SpecialIds special;
  int32_t unknown = -1;
};

absl::StatusOr<TokenizerFile> ParseTokenizerFile(std::string_view bytes, std::string_view config);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_TOKENS_BYTE_LEVEL_TOKENIZER_FILE_H_
