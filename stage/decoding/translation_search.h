// TranslationSearch: how translations are searched for with a tokenizer: its marks in the options of
// the beam search, and tokens that never come. TranslationGroups: the groups of a mini-batch.
// Ownership: the groups own their pool of rows.
// Threads:   one at a time.
#ifndef STAGECOACH_STAGE_DECODING_TRANSLATION_SEARCH_H_
#define STAGECOACH_STAGE_DECODING_TRANSLATION_SEARCH_H_

#include <cstdint>
#include <memory>
#include <vector>

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

class TranslationGroups {
 public:
  TranslationGroups(TranslationSearch search, int64_t pool_rows);

  // In the place of those before. numbers: of the sentences of each group, for the caller. The searches
  // live until the next call.
  std::vector<TokenSearch*> Begin(std::vector<std::vector<int64_t>> numbers);
  const StepChoice& choice() const { return search_.choice; }
  bool over() const;
  std::vector<TranslationGroup::Translation> TakeDone();  // since the last call

 private:
  const TranslationSearch search_;
  RowPool pool_;
  std::vector<std::unique_ptr<TranslationGroup>> groups_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_DECODING_TRANSLATION_SEARCH_H_
