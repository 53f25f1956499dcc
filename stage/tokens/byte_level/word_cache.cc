#include "stage/tokens/byte_level/word_cache.h"

#include <algorithm>
#include <functional>

namespace stagecoach {

size_t WordCache::SlotOf(std::string_view word) {
  return std::hash<std::string_view>()(word) % kSlots;
}

bool WordCache::Append(std::string_view word, std::vector<int32_t>* ids) const {
  if (slots_.empty() || word.empty() || word.size() > kMostBytes) return false;
  const Slot& slot = slots_[SlotOf(word)];
  if (std::string_view(slot.word.data(), slot.bytes) != word) return false;
  ids->insert(ids->end(), slot.ids.begin(), slot.ids.begin() + slot.count);
  return true;
}

void WordCache::Keep(std::string_view word, std::span<const int32_t> ids) {
  if (word.empty() || word.size() > kMostBytes || ids.size() > kMostIds) return;
  if (slots_.empty()) slots_.resize(kSlots);
  Slot& slot = slots_[SlotOf(word)];
  slot.bytes = static_cast<uint8_t>(word.size());
  slot.count = static_cast<uint8_t>(ids.size());
  std::ranges::copy(word, slot.word.begin());
  std::ranges::copy(ids, slot.ids.begin());
}

}  // namespace stagecoach
