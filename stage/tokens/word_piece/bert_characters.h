// Classes of characters as BERT's normalizer and pre-tokenizer of the library `tokenizers` know them:
// categories of Unicode 8.0, lower case of Unicode 17.0. ICU has the version of the system, on Debian 12
// version 15.0. Differences stand in tables here.
// Threads: pure functions.
#ifndef STAGECOACH_STAGE_TOKENS_WORD_PIECE_BERT_CHARACTERS_H_
#define STAGECOACH_STAGE_TOKENS_WORD_PIECE_BERT_CHARACTERS_H_

#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"

namespace stagecoach {

// Controls, formats and private use, but no tab and line end.
bool IsBertControl(char32_t character);
// Unicode's punctuation, and all signs of ASCII: "$" too.
bool IsBertPunctuation(char32_t character);
// Ideographs that Chinese, Japanese and Korean share.
bool IsBertIdeograph(char32_t character);
bool IsBertAccent(char32_t character);  // a nonspacing mark

void AppendLowercase(char32_t character, std::string* text);
void AppendCharacter(char32_t character, std::string* text);

// take: (a character, its bytes in the text). text: UTF-8.
void ForEachCharacter(std::string_view text,
                      absl::FunctionRef<void(char32_t, std::string_view)> take);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_TOKENS_WORD_PIECE_BERT_CHARACTERS_H_
