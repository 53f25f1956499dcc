// TokenSplit: how tokens become sequences: which are trained on, and which are held out.
// Threads: pure functions.
// Units:   a sequence is `context` tokens and reads one more, its last target.
// Errors:  INVALID_ARGUMENT naming the files, what is wrong, and the remedy.
#ifndef STAGECOACH_PLAN_DATA_TOKEN_SPLIT_H_
#define STAGECOACH_PLAN_DATA_TOKEN_SPLIT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "plan/job/job_spec.h"

namespace stagecoach {

struct TokenSplit {
  int64_t train_tokens = 0;  // the first 90 %, rounded down; the rest is held out
  int64_t train_sequences = 0;
  int64_t evaluation_sequences = 0;
};
// test: tokens of files of their own to evaluate with; then all of the others are trained on.
TokenSplit SplitTokens(int64_t tokens, int64_t context, std::optional<int64_t> test = std::nullopt);

// Tokens that were counted, and their names in errors.
struct CountedTokens {
  std::string where;  // `data.text.path = "/a"`
  int64_t tokens = 0;
  std::string unit = "tokens";
  std::string give = "a text";  // of at least so many
  bool has_test = false;        // there are others to evaluate with
};
// Refuses tokens without a sequence to train on, or without one to evaluate with although the job
// evaluates, and names the least number. Fewer sequences than a mini-batch takes are fine: they
// come again.
absl::Status CheckTrainTokens(const CountedTokens& counted, const JobSpec& spec, int64_t context);
// The same of those to evaluate with.
absl::Status CheckTestTokens(const CountedTokens& counted, const JobSpec& spec, int64_t context);

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_DATA_TOKEN_SPLIT_H_
