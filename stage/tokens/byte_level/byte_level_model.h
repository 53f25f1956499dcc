// MakeByteLevelModel: a tokenizer.json of Hugging Face whose model is byte-level BPE, as those of
// GPT-2, Llama 3, Qwen and RoBERTa. It gives the same ids as the library `tokenizers` gives without
// special tokens around the text, and the same text. What is in the file and not supported is
// refused; truncation, padding and chat templates are not applied.
//
// A text goes through these: added tokens are found in it (tokenizer_json/added_tokens.h); the rest is normalized
// (tokenizer_json/unicode_normalizer.h), cut into words (pre_tokenizer.h), and each word into pieces
// (bpe_merges.h).
//
// Errors: INVALID_ARGUMENT naming the field, its value and the remedy.
#ifndef STAGECOACH_STAGE_TOKENS_BYTE_LEVEL_BYTE_LEVEL_MODEL_H_
#define STAGECOACH_STAGE_TOKENS_BYTE_LEVEL_BYTE_LEVEL_MODEL_H_

#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/json/json_field.h"
#include "stage/tokens/model/tokenizer_model.h"

namespace stagecoach {

// tokenizer: the whole tokenizer.json. config: the content of tokenizer_config.json beside it; empty:
// there is none.
absl::StatusOr<std::unique_ptr<const TokenizerModel>> MakeByteLevelModel(const JsonField& tokenizer,
                                                                         std::string_view config);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_TOKENS_BYTE_LEVEL_BYTE_LEVEL_MODEL_H_
