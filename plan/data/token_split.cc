#include "plan/data/token_split.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace stagecoach {
namespace {

constexpr char kNoEvaluation[] = "no evaluation (evaluation.every_steps, evaluation.every_epochs)";

int64_t SequencesIn(int64_t tokens, int64_t context) {
  return tokens > 0 ? (tokens - 1) / context : 0;
}

// Of which each part that the job reads has one sequence and its target.
int64_t LeastTokens(bool has_test, const JobSpec& spec, int64_t context) {
  if (has_test) return context + 1;
  const int64_t to_train = ((context + 1) * 10 + 8) / 9;  // of which 90 % are enough
  const int64_t to_hold_out = context * 10 + 1;           // of which the rest is enough
  return spec.evaluation.given() ? std::max(to_train, to_hold_out) : to_train;
}

std::string WhatIs(const CountedTokens& counted) {
  return absl::StrCat(counted.where, " of ", counted.tokens, " ", counted.unit);
}

std::string GiveAtLeast(const CountedTokens& counted, int64_t least) {
  return absl::StrCat("; give ", counted.give, " of at least ", least, " ", counted.unit);
}

}  // namespace

TokenSplit SplitTokens(int64_t tokens, int64_t context, std::optional<int64_t> test) {
  TokenSplit split;
  split.train_tokens = test.has_value() ? tokens : tokens / 10 * 9 + tokens % 10 * 9 / 10;
  split.train_sequences = SequencesIn(split.train_tokens, context);
  split.evaluation_sequences = SequencesIn(test.value_or(tokens - split.train_tokens), context);
  return split;
}

absl::Status CheckTrainTokens(const CountedTokens& counted, const JobSpec& spec, int64_t context) {
  const bool whole = counted.has_test;
  const std::string what = WhatIs(counted);
  const std::string give = GiveAtLeast(counted, LeastTokens(whole, spec, context));
  const TokenSplit split = SplitTokens(counted.tokens, context,
                                       whole ? std::optional<int64_t>(context + 1) : std::nullopt);
  if (counted.tokens == 0) {
    return absl::InvalidArgumentError(absl::StrCat(what, ": the file is empty", give));
  }
  if (split.train_sequences < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, whole ? ": holds" : ": its first 90 % hold", " no sequence of ", context,
                     " tokens and one target", give, " or a smaller context"));
  }
  if (spec.evaluation.given() && split.evaluation_sequences < 1) {
    return absl::InvalidArgumentError(absl::StrCat(what, ": the 10 % held out hold no sequence of ",
                                                   context, " tokens and one target", give,
                                                   ", a smaller context, or ", kNoEvaluation));
  }
  return absl::OkStatus();
}

absl::Status CheckTestTokens(const CountedTokens& counted, const JobSpec& spec, int64_t context) {
  if (!spec.evaluation.given() || SequencesIn(counted.tokens, context) >= 1) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(WhatIs(counted), ": holds no sequence of ", context, " tokens and one target",
                   GiveAtLeast(counted, context + 1), ", a smaller context, or ", kNoEvaluation));
}

}  // namespace stagecoach
