// BpeMerges: a word as pieces: from single characters on, the pair of neighbours that is first in the
// list of merges is joined, the leftmost of several, until no pair is in the list.
// Ownership: borrows the pieces' texts, which outlive it.  Threads: immutable.
// Errors:    Tokenize: INVALID_ARGUMENT: a character is no piece, and the unknown piece is missing.
// See:       Sennrich et al., Neural Machine Translation of Rare Words with Subword Units.
#ifndef STAGECOACH_STAGE_TOKENS_BYTE_LEVEL_BPE_MERGES_H_
#define STAGECOACH_STAGE_TOKENS_BYTE_LEVEL_BPE_MERGES_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "stage/tokens/byte_level/byte_characters.h"
#include "stage/tokens/byte_level/word_cache.h"
#include "stage/tokens/tokenizer_json/token_list.h"

namespace stagecoach {

struct BpeRules {
  // A word that is a piece is that piece, whatever the merges make of it.
  bool ignore_merges = false;
  // A character that is no piece is written as the pieces "<0x0A>" of its bytes, if all are there.
  bool byte_fallback = false;
  // Unknown characters in a row are one piece.
  bool fuse_unknown = false;
  std::optional<std::string> unknown;  // what stands for other characters; none: they are left out
};

class BpeMerges {
 public:
  struct Merge {
    int32_t left = 0, right = 0, joined = 0;
  };
  // merges: the first one goes first. Of equal pairs the last one counts.
  BpeMerges(Vocabulary vocabulary, const std::vector<Merge>& merges, BpeRules rules);

  // What Tokenize works with, and the words it knows; of one BpeMerges and one thread at a time.
  class Work;
  // Appends the ids of a word.
  absl::Status Tokenize(std::string_view word, Work* work, std::vector<int32_t>* ids) const;

  // -1: no piece.
  int32_t Find(std::string_view piece) const;

 private:
  struct Joined {
    uint32_t rank = 0;  // place in the list
    int32_t id = 0;
  };
  const Joined* FindMerge(int32_t left, int32_t right) const;
  absl::Status MakeIds(std::string_view word, Work* work, std::vector<int32_t>* ids) const;
  int32_t FindCharacter(std::string_view character) const;
  absl::Status Begin(std::string_view word, Work* work) const;
  void Join(Work* work) const;
  void Propose(Work* work, int32_t left) const;

  const Vocabulary vocabulary_;
  const BpeRules rules_;
  absl::flat_hash_map<uint64_t, Joined> merges_;          // by both ids
  std::array<int32_t, kByteCharactersEnd> characters_{};  // ids of the first characters; -1: none
  std::array<int32_t, 256> bytes_{};                      // ids of "<0x0A>"; -1: none
  int32_t unknown_ = -1;
};

class BpeMerges::Work {
 private:
  friend class BpeMerges;
  struct Symbol {
    int32_t id = 0;
    int32_t before = -1, next = -1;  // places; -1: none
    bool gone = false;               // joined to the one before
  };
  struct Pair {
    uint32_t rank = 0;
    int32_t left = 0;                               // place
    int32_t left_id = 0, right_id = 0, joined = 0;  // ids
  };
  WordCache cache_;
  std::vector<Symbol> symbols_;
  std::vector<Pair> pairs_;  // a heap
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_TOKENS_BYTE_LEVEL_BPE_MERGES_H_
