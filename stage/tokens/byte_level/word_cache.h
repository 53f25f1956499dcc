// WordCache: the ids of words that came before, since most words of a text come again. A word takes
// the place of another one in its slot, so the size is bounded.
// Ownership: owns everything.  Threads: thread-compatible.
// Memory:    1 MiB from the first word on.
#ifndef STAGECOACH_STAGE_TOKENS_BYTE_LEVEL_WORD_CACHE_H_
#define STAGECOACH_STAGE_TOKENS_BYTE_LEVEL_WORD_CACHE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace stagecoach {

class WordCache {
 public:
  // Appends the ids of a kept word. False: it is not kept.
  bool Append(std::string_view word, std::vector<int32_t>* ids) const;
  // A word that is empty, or has more bytes or ids than a slot, is not kept.
  void Keep(std::string_view word, std::span<const int32_t> ids);

 private:
  static constexpr size_t kSlots = size_t{1} << 13;
  static constexpr size_t kMostBytes = 70, kMostIds = 14;
  struct Slot {
    uint8_t bytes = 0, count = 0;  // of the word and of its ids; 0 bytes: the slot is empty
    std::array<char, kMostBytes> word;
    std::array<int32_t, kMostIds> ids;
  };
  static_assert(sizeof(Slot) == 128);
  static size_t SlotOf(std::string_view word);

  std::vector<Slot> slots_;  // none before the first word
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_TOKENS_BYTE_LEVEL_WORD_CACHE_H_
