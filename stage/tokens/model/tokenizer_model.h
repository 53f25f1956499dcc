// TokenizerModel: what a tokenizer's file says, of any form: its pieces, text to ids and back.
// Ownership: owns everything.  Threads: immutable; any thread.
// Errors:    Encode: INVALID_ARGUMENT: the text is not UTF-8, or has a zero byte; "the tokenizer: …"
//            and the remedy: the model's rules for this text are damaged.
//            Decode: INVALID_ARGUMENT: an id that the model does not have.
#ifndef STAGECOACH_STAGE_TOKENS_MODEL_TOKENIZER_MODEL_H_
#define STAGECOACH_STAGE_TOKENS_MODEL_TOKENIZER_MODEL_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "stage/tokens/model/piece.h"

namespace stagecoach {

struct TokenizerFacts {
  std::string kind;  // "unigram", "bpe", "byte_level_bpe", "word_piece"
  std::string normalizer;
  // Characters that are no piece are written as bytes.
  bool byte_fallback = false;
  // A text gets a space in front of it, or is cut as if (cut_space in tokenizer.h).
  bool adds_space = true;
  // Line ends are part of a text, which the end id ends. If false, the end id stands for a line's end.
  bool line_ends = false;
  bool of_json = false;       // the file is a tokenizer.json
  bool begins_texts = false;  // a text to continue has the begin id in front
  // Ids with a meaning; -1: the model has none.
  int32_t unknown = -1, begin = -1, end = -1, pad = -1, mask = -1;
};

class TokenizerModel {
 public:
  virtual ~TokenizerModel() = default;
  virtual const TokenizerFacts& facts() const = 0;
  virtual const std::vector<Piece>& pieces() const = 0;  // by id
  virtual absl::StatusOr<std::vector<int32_t>> Encode(std::string_view text) const = 0;
  virtual absl::StatusOr<std::string> Decode(std::span<const int32_t> ids) const = 0;
};

inline constexpr std::string_view kReplacementCharacter =
    "\ufffd";  // for bytes that are no character

inline absl::Status NoUtf8Text() {
  return absl::InvalidArgumentError(
      "the text is not UTF-8, or has a zero byte; convert it to UTF-8 first (iconv -t UTF-8)");
}

inline absl::Status NoSuchId(int32_t id, size_t ids) {
  return absl::InvalidArgumentError(
      absl::StrCat("id ", id, " is not among the ", ids, " ids of the tokenizer, from 0 on"));
}

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_TOKENS_MODEL_TOKENIZER_MODEL_H_
