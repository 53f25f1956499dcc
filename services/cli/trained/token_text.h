// TokenText: a text that a network writes, token by token: bytes, or the ids of a tokenizer. As in
// training, the end id stands for the end of a line (stage/data/opened_text.h).
// Ownership: borrows the tokenizer.  Threads: thread-compatible.
// Errors:    INVALID_ARGUMENT naming --prompt.
#ifndef STAGECOACH_SERVICES_CLI_TRAINED_TOKEN_TEXT_H_
#define STAGECOACH_SERVICES_CLI_TRAINED_TOKEN_TEXT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "stage/tokens/tokenizer.h"

namespace stagecoach {

class TokenText {
 public:
  // tokenizer: null if tokens are bytes. vocabulary: the network's.
  TokenText(const Tokenizer* tokenizer, int64_t vocabulary)
      : tokenizer_(tokenizer), vocabulary_(vocabulary) {}

  // The tokens of the prompt, with which the text begins; call it once, first.
  absl::StatusOr<std::vector<int32_t>> Begin(const std::string& prompt);
  // What the next token adds to the text. Bytes of a character come together.
  std::string Add(int32_t token);
  std::string Finish();  // what waited for more bytes of its character

 private:
  std::string New(bool whole);

  const Tokenizer* const tokenizer_;
  const int64_t vocabulary_;
  std::vector<int32_t> line_;  // ids of the last line
  std::string told_;           // its text so far
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_TRAINED_TOKEN_TEXT_H_
