// TextNormalizer: a text as a tokenizer segments it: characters replaced by the model's rules,
// superfluous spaces removed, spaces written as U+2581.
// The compiled rules: four bytes, the bytes of a double array (Darts-clone) as a little-endian
// number; the array, which maps a text to an offset; the replacements, each ending with a zero.
// Ownership: owns the rules; borrows the user's symbols.  Threads: immutable.
// Errors:    Make: DATA_LOSS: the rules are damaged. Offsets are checked at each use: to check them
//            all would take as long as the rest of Tokenizer::Load.
#ifndef STAGECOACH_STAGE_TOKENS_SENTENCE_PIECE_NORMALIZER_H_
#define STAGECOACH_STAGE_TOKENS_SENTENCE_PIECE_NORMALIZER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "stage/tokens/model/piece_trie.h"
#include "stage/tokens/sentence_piece/model_file.h"

namespace stagecoach {

inline constexpr std::string_view kSpaceMark = "\u2581";

// Bytes of the character that begins with `first`, as its first bits tell.
size_t CharacterBytes(char first);

class TextNormalizer {
 public:
  // symbols: texts that no rule changes; outlives this.
  static absl::StatusOr<TextNormalizer> Make(NormalizerRules rules, const PieceTrie* symbols);

  // text: UTF-8. DATA_LOSS: a rule is damaged, or makes a text much longer.
  absl::StatusOr<std::string> Normalize(std::string_view text) const;

 private:
  TextNormalizer() = default;
  struct Step {
    std::string_view text;  // replacement of the next characters
    size_t bytes = 0;       // of these
  };
  absl::StatusOr<Step> Next(std::string_view text) const;
  // Of the longest rule that applies; `bytes` is 0 if none does.
  absl::StatusOr<Step> Rule(std::string_view text) const;

  NormalizerRules rules_;
  const PieceTrie* symbols_ = nullptr;
  std::vector<uint32_t> array_;
  std::string replacements_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_TOKENS_SENTENCE_PIECE_NORMALIZER_H_
