#include "stage/decoding/translation_search.h"

namespace stagecoach {

TranslationSearch SearchWith(const Tokenizer& tokenizer, const TranslationOptions& options) {
  TranslationSearch search{.options = options, .choice = {}};
  search.options.beam.end = tokenizer.end();
  search.options.begin = tokenizer.begin();
  search.choice.options.candidates = 2 * options.beam.beam;
  for (const int32_t mark : {tokenizer.begin(), tokenizer.pad()}) {
    if (mark >= 0 && mark != tokenizer.end()) search.choice.forbidden.push_back(mark);
  }
  return search;
}

}  // namespace stagecoach
