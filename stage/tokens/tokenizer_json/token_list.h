// TokenList: the tokens of a tokenizer.json, whatever its model: the vocabulary, added tokens, and
// those with a meaning.
// Errors: INVALID_ARGUMENT naming the field, its value and the remedy.
#ifndef STAGECOACH_STAGE_TOKENS_TOKENIZER_JSON_TOKEN_LIST_H_
#define STAGECOACH_STAGE_TOKENS_TOKENIZER_JSON_TOKEN_LIST_H_

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "base/json/json_field.h"
#include "stage/tokens/model/piece.h"
#include "stage/tokens/tokenizer_json/added_tokens.h"
#include "stage/tokens/tokenizer_json/special_ids.h"

namespace stagecoach {

// Ids of pieces by text. Borrows the texts.
using Vocabulary = absl::flat_hash_map<std::string_view, int32_t, std::hash<std::string_view>,
                                       std::equal_to<std::string_view>>;

struct TokenList {
  std::vector<Piece> pieces;           // by id, added ones too; no two texts are the same
  std::vector<int32_t> in_vocabulary;  // ids of the model's pieces
  std::vector<AddedToken> added;
  SpecialIds special;
};

// model.vocab. The result borrows the document.
absl::StatusOr<Vocabulary> ReadVocabulary(const JsonField& field, TokenList* tokens);

// The rest. tokenizer: the whole tokenizer.json. config: the content of tokenizer_config.json; empty:
// there is none. vocabulary: of ReadVocabulary; added tokens join it.
absl::Status ReadOtherTokens(const JsonField& tokenizer, std::string_view config,
                             Vocabulary* vocabulary, TokenList* tokens);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_TOKENS_TOKENIZER_JSON_TOKEN_LIST_H_
