// TokenText: a text that a network writes, token by token: bytes, or the ids of a tokenizer. As in
// training, the end id stands for the end of a line, unless the tokenizer has ids for line ends: then
// it ends the text (EndOfText).
// Ownership: borrows the tokenizer.  Threads: thread-compatible.
// Errors:    INVALID_ARGUMENT naming the option or field that was given.
#ifndef STAGECOACH_STAGE_TOKENS_TOKEN_TEXT_H_
#define STAGECOACH_STAGE_TOKENS_TOKEN_TEXT_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "stage/tokens/tokenizer.h"

namespace stagecoach {

class TokenText {
 public:
  // tokenizer: null if tokens are bytes. vocabulary: the network's.
  TokenText(const Tokenizer* tokenizer, int64_t vocabulary)
      : tokenizer_(tokenizer), vocabulary_(vocabulary) {}

  // The tokens of the prompt, with which the text begins; call it once, first. field: "--prompt".
  absl::StatusOr<std::vector<int32_t>> Begin(const std::string& field, std::string_view prompt);
  // What the next token adds to the text. Bytes of a character come together.
  std::string Add(int32_t token);
  std::string Finish();  // what waited for more bytes of its character

 private:
  std::string New(bool whole);
  void Forget();

  const Tokenizer* const tokenizer_;
  const int64_t vocabulary_;
  std::vector<int32_t> line_;  // ids of the last line; of a long one the last ids
  std::string told_;           // their text so far; without a tokenizer, what waits for more bytes
};

// The id that ends a text without having been asked for; -1: none.
int32_t EndOfText(const Tokenizer* tokenizer);

// The token that ends a text: a piece of the tokenizer, or a byte without one; "\n": the end of a line.
// field: "--stop".
absl::StatusOr<int32_t> StopToken(const Tokenizer* tokenizer, int64_t vocabulary,
                                  const std::string& field, const std::string& stop);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_TOKENS_TOKEN_TEXT_H_
