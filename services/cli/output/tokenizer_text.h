// TokenizerText: what `stagecoach tokenizer show` and `train` print of a tokenizer.
// Threads: pure functions.
#ifndef STAGECOACH_SERVICES_CLI_OUTPUT_TOKENIZER_TEXT_H_
#define STAGECOACH_SERVICES_CLI_OUTPUT_TOKENIZER_TEXT_H_

#include <cstdint>
#include <string>

#include "services/cli/output/console.h"
#include "stage/tokens/tokenizer.h"

namespace stagecoach {

// With its first pieces, at most so many.
std::string TokenizerText(const std::string& path, const Tokenizer& tokenizer, int64_t first,
                          OutputFormat format);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_OUTPUT_TOKENIZER_TEXT_H_
