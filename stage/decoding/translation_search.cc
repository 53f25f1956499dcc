#include "stage/decoding/translation_search.h"

#include <algorithm>
#include <utility>

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

TranslationGroups::TranslationGroups(TranslationSearch search, int64_t pool_rows)
    : search_(std::move(search)), pool_(static_cast<int32_t>(pool_rows)) {}

std::vector<TokenSearch*> TranslationGroups::Begin(std::vector<std::vector<int64_t>> numbers) {
  groups_.clear();
  std::vector<TokenSearch*> searches;
  for (std::vector<int64_t>& of_group : numbers) {
    groups_.push_back(
        std::make_unique<TranslationGroup>(search_.options, std::move(of_group), &pool_));
    searches.push_back(groups_.back().get());
  }
  return searches;
}

bool TranslationGroups::over() const {
  return std::all_of(groups_.begin(), groups_.end(),
                     [](const auto& group) { return group->over(); });
}

std::vector<TranslationGroup::Translation> TranslationGroups::TakeDone() {
  std::vector<TranslationGroup::Translation> all;
  for (const auto& group : groups_) {
    for (TranslationGroup::Translation& one : group->TakeDone()) all.push_back(std::move(one));
  }
  return all;
}

}  // namespace stagecoach
