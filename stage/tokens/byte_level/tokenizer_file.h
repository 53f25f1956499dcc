// TokenizerFile: the content of a tokenizer.json of byte-level BPE, checked: its pieces, merges and
// added tokens, and the steps before them.
// Errors: INVALID_ARGUMENT naming the field, its value and the remedy.
#ifndef STAGECOACH_STAGE_TOKENS_BYTE_LEVEL_TOKENIZER_FILE_H_
#define STAGECOACH_STAGE_TOKENS_BYTE_LEVEL_TOKENIZER_FILE_H_

#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/json/json_field.h"
#include "stage/tokens/byte_level/bpe_merges.h"
#include "stage/tokens/byte_level/pre_tokenizer.h"
#include "stage/tokens/tokenizer_json/token_list.h"
#include "stage/tokens/tokenizer_json/unicode_normalizer.h"

namespace stagecoach {

struct TokenizerFile {
  TokenList tokens;
  std::vector<BpeMerges::Merge> merges;
  BpeRules rules;
  UnicodeNormalizer normalizer;
  PreTokenizer pre_tokenizer;
  int32_t unknown = -1;
};

// tokenizer: the whole tokenizer.json. config: the content of tokenizer_config.json; empty: there is
// none.
absl::StatusOr<TokenizerFile> ReadTokenizerFile(const JsonField& tokenizer,
                                                std::string_view config);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_TOKENS_BYTE_LEVEL_TOKENIZER_FILE_H_
