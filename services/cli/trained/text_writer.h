// TextWriter: continues prompts with trained weights, on one cell that holds the whole network.
// Ownership: borrows the network.  Threads: one thread.
// Determinism: token i of prompt j is a function of weights, prompt, i, j and all options but batch.
//            On other back ends than the reference, the number of prompts that are continued
//            together may change the last bits of its logits.
// Errors:    INVALID_ARGUMENT: a prompt without tokens, or with ids beyond the vocabulary; a stop
//            that is no token. RESOURCE_EXHAUSTED: no memory for keys and values.
//            FAILED_PRECONDITION: logits are not finite.
#ifndef STAGECOACH_SERVICES_CLI_TRAINED_TEXT_WRITER_H_
#define STAGECOACH_SERVICES_CLI_TRAINED_TEXT_WRITER_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "services/cli/trained/decoding_network.h"
#include "services/cli/trained/line_groups.h"

namespace stagecoach {

struct WritingOptions {
  int64_t tokens = 200;
  double temperature = 0.8;  // 0: always the likeliest
  int64_t top_k = 0;         // 0: of all tokens
  double top_p = 1;
  uint64_t seed = 1;
  int64_t batch = kPromptGroups.most;  // prompts that are continued together, at least 1
  // Tokens that end a text: pieces of the tokenizer, or single bytes; "\n": the end of a line.
  std::vector<std::string> stops;
};

struct WrittenText {
  std::string text;  // without the prompt
  int64_t tokens = 0;
  bool stopped = false;
};

// Prompts by their numbers.
struct TextEvents {
  // What a token adds; false ends all.
  std::function<bool(int prompt, std::string_view text)> on_text;
  // A text has ended; in the order of the prompts. May be empty: not wanted.
  std::function<void(int prompt, const WrittenText& text)> on_whole = nullptr;
};

// Continues the prompts, options.batch at a time.
absl::StatusOr<std::vector<WrittenText>> WriteTexts(const DecodingNetwork& network,
                                                    const std::vector<std::string>& prompts,
                                                    const WritingOptions& options,
                                                    const TextEvents& events);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_TRAINED_TEXT_WRITER_H_
