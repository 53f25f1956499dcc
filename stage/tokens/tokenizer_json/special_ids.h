// Special ids: which tokens begin and end a text, fill a mini-batch, and mask a token. Of each the first
// that is known, and that the tokenizer has:
//   1. bos_token, eos_token, pad_token, mask_token of tokenizer_config.json; null: none. If there
//      is no bos_token, cls_token; if there is no eos_token, sep_token.
//   2. What the post-processor of tokenizer.json puts in front of a text and behind it; its padding.
//   3. An added token with a usual name, as "</s>" or "[MASK]". A vocabulary may have such a piece too:
//      of HTML.
// Threads: pure functions.
// Errors:  INVALID_ARGUMENT naming field, value and remedy; a token of tokenizer_config.json that
//          the tokenizer does not have; a post-processor of another kind.
#ifndef STAGECOACH_STAGE_TOKENS_TOKENIZER_JSON_SPECIAL_IDS_H_
#define STAGECOACH_STAGE_TOKENS_TOKENIZER_JSON_SPECIAL_IDS_H_

#include <cstdint>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "base/json/json_field.h"

namespace stagecoach {

struct SpecialIds {
  int32_t begin = -1, end = -1, pad = -1, mask = -1;  // -1: none
  bool begins_texts = false;  // the post-processor puts `begin` in front of a text
};

// Of a token, or -1. only_added: of the added tokens.
using FindToken = absl::FunctionRef<int32_t(std::string_view, bool only_added)>;

// tokenizer: the whole tokenizer.json. config: tokenizer_config.json; missing: there is none.
absl::StatusOr<SpecialIds> FindSpecialIds(const JsonField& tokenizer, const JsonField& config,
                                          FindToken find);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_TOKENS_TOKENIZER_JSON_SPECIAL_IDS_H_
