// MakeWordPieceModel: a tokenizer.json of Hugging Face in BERT's form: WordPiece, BertNormalizer and
// BertPreTokenizer. It gives the same ids as the library `tokenizers` gives without special tokens
// around the text, and the same text. Fields that are not supported are refused. Truncation and
// padding are not applied.
//
// A text goes through these: added tokens are found in it (tokenizer_json/added_tokens.h); the rest is
// normalized (bert_normalizer.h), cut into words (bert_words.h), and each word into pieces
// (word_pieces.h).
//
// Errors: INVALID_ARGUMENT naming the field, its value and the remedy.
#ifndef STAGECOACH_STAGE_TOKENS_WORD_PIECE_WORD_PIECE_MODEL_H_
#define STAGECOACH_STAGE_TOKENS_WORD_PIECE_WORD_PIECE_MODEL_H_

#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/json/json_field.h"
#include "stage/tokens/model/tokenizer_model.h"

namespace stagecoach {

// tokenizer: the whole tokenizer.json. config: the content of tokenizer_config.json beside it; empty:
// there is none.
absl::StatusOr<std::unique_ptr<const TokenizerModel>> MakeWordPieceModel(const JsonField& tokenizer,
                                                                         std::string_view config);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_TOKENS_WORD_PIECE_WORD_PIECE_MODEL_H_
