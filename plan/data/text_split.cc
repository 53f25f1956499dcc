#include "plan/data/text_split.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "plan/data/text.h"

namespace stagecoach {
namespace {

int64_t SequencesIn(int64_t bytes, int64_t context) {
  return bytes > 0 ? (bytes - 1) / context : 0;
}

// Of which each part that the job reads has one sequence and its target.
int64_t LeastBytes(const JobSpec& spec, int64_t context) {
  const int64_t to_train = ((context + 1) * 10 + 8) / 9;  // of which 90 % are enough
  const int64_t to_hold_out = context * 10 + 1;           // of which the rest is enough
  return spec.evaluation.given() ? std::max(to_train, to_hold_out) : to_train;
}

}  // namespace

TextSplit SplitText(int64_t bytes, int64_t context) {
  TextSplit split;
  split.train_bytes = bytes / 10 * 9 + bytes % 10 * 9 / 10;
  split.train_sequences = SequencesIn(split.train_bytes, context);
  split.evaluation_sequences = SequencesIn(bytes - split.train_bytes, context);
  return split;
}

absl::Status CheckTextLength(const JobSpec& spec, int64_t context, int64_t bytes) {
  const std::string what =
      absl::StrCat("data.text.path = \"", spec.data.As<TextData>().path, "\" of ", bytes, " bytes");
  const std::string give =
      absl::StrCat("; give a text of at least ", LeastBytes(spec, context), " bytes");
  const TextSplit split = SplitText(bytes, context);
  if (bytes == 0)
    return absl::InvalidArgumentError(absl::StrCat(what, ": the file is empty", give));
  if (split.train_sequences < 1) {
    return absl::InvalidArgumentError(absl::StrCat(what, ": its first 90 % hold no sequence of ",
                                                   context, " tokens and one target", give,
                                                   " or a smaller context"));
  }
  if (spec.evaluation.given() && split.evaluation_sequences < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        what, ": the 10 % held out hold no sequence of ", context, " tokens and one target", give,
        ", a smaller context, or no evaluation (evaluation.every_steps, evaluation.every_epochs)"));
  }
  return absl::OkStatus();
}

}  // namespace stagecoach
