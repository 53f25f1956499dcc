// AddedTokens: tokens that are looked for in the text before the rest is cut: the leftmost one, of
// several there the longest. Those with `normalized` are looked for in the normalized text, the
// others in the text as it is.
// Ownership: owns everything.  Threads: immutable.
// Errors:    Read: INVALID_ARGUMENT naming field, value and remedy.
#ifndef STAGECOACH_STAGE_TOKENS_BYTE_LEVEL_ADDED_TOKENS_H_
#define STAGECOACH_STAGE_TOKENS_BYTE_LEVEL_ADDED_TOKENS_H_

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/json/json_field.h"
#include "stage/tokens/byte_level/unicode_normalizer.h"
#include "stage/tokens/model/piece_trie.h"

namespace stagecoach {

struct AddedToken {
  int32_t id = 0;
  std::string content;       // UTF-8, not empty
  bool single_word = false;  // not beside letters
  bool strips_left = false;  // takes the spaces on its left with it
  bool strips_right = false;
  bool normalized = false;
  bool special = false;
};

// The field "added_tokens" of a tokenizer.json.
absl::StatusOr<std::vector<AddedToken>> ReadAddedTokens(const JsonField& field);

class AddedTokens {
 public:
  AddedTokens(std::vector<AddedToken> tokens, const UnicodeNormalizer& normalizer);

  struct Part {
    std::string_view text;  // of the given one
    int32_t id = -1;        // of the token that it is; -1: none
  };
  // normalized: which of the tokens are looked for.
  std::vector<Part> Cut(std::string_view text, bool normalized) const;

 private:
  // Those that are looked for in one of the texts.
  struct Set {
    std::vector<size_t> tokens;  // places in tokens_, by the trie's ids
    PieceTrie trie;
    std::array<bool, 256> first_bytes{};
  };
  static Set MakeSet(const std::vector<AddedToken>& tokens, bool normalized,
                     const UnicodeNormalizer& normalizer);

  const std::vector<AddedToken> tokens_;
  const Set raw_, normalized_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_TOKENS_BYTE_LEVEL_ADDED_TOKENS_H_
