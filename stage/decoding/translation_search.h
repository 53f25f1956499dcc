// TranslationSearch: how translations are searched for with a tokenizer: its marks in the options of
// the beam search, and tokens that never come.
// Threads: pure functions.
#ifndef STAGECOACH_STAGE_DECODING_TRANSLATION_SEARCH_H_
#define STAGECOACH_STAGE_DECODING_TRANSLATION_SEARCH_H_

#include "decoding/token_model.h"
#include "decoding/translation_group.h"
#include "stage/tokens/tokenizer.h"

namespace stagecoach {

struct TranslationSearch {
  TranslationOptions options;
  StepChoice choice;
};

// The tokenizer has begin and end. options: plan/costs/decoding_memory.h, TranslationOf.
TranslationSearch SearchWith(const Tokenizer& tokenizer, const TranslationOptions& options);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_DECODING_TRANSLATION_SEARCH_H_
