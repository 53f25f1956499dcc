// BERT's words: a text is cut at white space, and around each punctuation mark.
// Threads: pure functions.
// Errors:  CheckBertPreTokenizer: INVALID_ARGUMENT naming field, value and remedy.
#ifndef STAGECOACH_STAGE_TOKENS_WORD_PIECE_BERT_WORDS_H_
#define STAGECOACH_STAGE_TOKENS_WORD_PIECE_BERT_WORDS_H_

#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "base/json/json_field.h"

namespace stagecoach {

// The field "pre_tokenizer" of a tokenizer.json. It has no options.
absl::Status CheckBertPreTokenizer(const JsonField& field);

// text: UTF-8, normalized. Parts of it, in order, none empty.
std::vector<std::string_view> BertWords(std::string_view text);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_TOKENS_WORD_PIECE_BERT_WORDS_H_
