// NGrams: a text cut into units, words or characters, and how often each n-gram of units occurs.
// Ownership: counts point into the text of their units, which must live and stay in its place.
// Threads:   pure functions.
#ifndef STAGECOACH_SCORES_NGRAMS_H_
#define STAGECOACH_SCORES_NGRAMS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace stagecoach {

struct TextUnits {
  std::string text;
  std::vector<size_t> begins, ends;  // of each unit, in bytes of text
  int64_t size() const { return static_cast<int64_t>(begins.size()); }
};

// Words between white space. Their text has one blank between two, so no two n-grams are alike.
TextUnits WordUnits(std::string_view text);
// Code points without white space.
TextUnits CharacterUnits(std::string_view text);

using NGramCounts = std::unordered_map<std::string_view, int64_t>;
NGramCounts CountNGrams(const TextUnits& units, int64_t order);

// Occurrences of all n-grams of this order.
int64_t TotalNGrams(const TextUnits& units, int64_t order);
// Sum over the n-grams of the lesser count.
int64_t MatchingNGrams(const NGramCounts& one, const NGramCounts& other);

}  // namespace stagecoach

#endif  // STAGECOACH_SCORES_NGRAMS_H_
