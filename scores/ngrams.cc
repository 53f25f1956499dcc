#include "scores/ngrams.h"

#include <algorithm>

#include "scores/code_points.h"

namespace stagecoach {
namespace {

void AppendUnit(std::string_view unit, TextUnits* units) {
  units->begins.push_back(units->text.size());
  units->text.append(unit);
  units->ends.push_back(units->text.size());
}

}  // namespace

TextUnits WordUnits(std::string_view text) {
  TextUnits units;
  for (const std::string_view word : SplitWords(text)) {
    if (!units.text.empty()) units.text.push_back(' ');
    AppendUnit(word, &units);
  }
  return units;
}

TextUnits CharacterUnits(std::string_view text) {
  TextUnits units;
  for (size_t i = 0; i < text.size();) {
    const CodePoint point = CodePointAt(text, i);
    if (!IsWhiteSpace(point.value)) AppendUnit(text.substr(i, point.bytes), &units);
    i += point.bytes;
  }
  return units;
}

NGramCounts CountNGrams(const TextUnits& units, int64_t order) {
  const std::string_view text = units.text;
  NGramCounts counts;
  for (int64_t i = 0; i < TotalNGrams(units, order); ++i) {
    const auto first = static_cast<size_t>(i), last = static_cast<size_t>(i + order - 1);
    ++counts[text.substr(units.begins[first], units.ends[last] - units.begins[first])];
  }
  return counts;
}

int64_t TotalNGrams(const TextUnits& units, int64_t order) {
  return std::max<int64_t>(units.size() - order + 1, 0);
}

int64_t MatchingNGrams(const NGramCounts& one, const NGramCounts& other) {
  int64_t sum = 0;
  for (const auto& [ngram, count] : one) {
    const auto found = other.find(ngram);
    if (found != other.end()) sum += std::min(count, found->second);
  }
  return sum;
}

}  // namespace stagecoach
