// AddedTokens: tokens that are looked for in the text before the rest is cut: the leftmost one, of
// several there the longest. Those with `normalized` are looked for in the normalized text, the
// others in the text as it is.
// Ownership: owns everything.  Threads: immutable.
// Errors:    Read: INVALID_ARGUMENT naming field, value and remedy. Encode: as TokenizerModel's.
#ifndef STAGECOACH_STAGE_TOKENS_TOKENIZER_JSON_ADDED_TOKENS_H_
#define STAGECOACH_STAGE_TOKENS_TOKENIZER_JSON_ADDED_TOKENS_H_

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "base/json/json_field.h"
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

using NormalizeText = absl::FunctionRef<std::string(std::string_view)>;
// Appends the ids of a normalized text without added tokens.
using EncodeWords = absl::FunctionRef<absl::Status(std::string_view, std::vector<int32_t>*)>;

class AddedTokens {
 public:
  AddedTokens(std::vector<AddedToken> tokens, NormalizeText normalize);

  // The ids of a text: those of its added tokens, and those of the texts between them.
  absl::StatusOr<std::vector<int32_t>> Encode(std::string_view text, NormalizeText normalize,
                                              EncodeWords encode) const;

  // The text that is decoded of a piece with that id. As in the library, an added token with
  // `normalized` comes back normalized.
  std::string_view DecodedText(int32_t id, std::string_view piece) const;

 private:
  struct Part {
    std::string_view text;  // of the given one
    int32_t id = -1;        // of the token that it is; -1: none
  };
  // normalized: which of the tokens are looked for.
  std::vector<Part> Cut(std::string_view text, bool normalized) const;

  // Those that are looked for in one of the texts.
  struct Set {
    std::vector<size_t> tokens;  // places in tokens_, by the trie's ids
    PieceTrie trie;
    std::array<bool, 256> first_bytes{};
  };
  static Set MakeSet(const std::vector<AddedToken>& tokens, bool normalized,
                     NormalizeText normalize);

  const std::vector<AddedToken> tokens_;
  const Set raw_, normalized_;
  absl::flat_hash_map<int32_t, std::string> normalized_texts_;  // by id
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_TOKENS_TOKENIZER_JSON_ADDED_TOKENS_H_
