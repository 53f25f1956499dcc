#include "plan/data/text_file.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/files/file_kind.h"
#include "base/utf8.h"

namespace stagecoach {
namespace {

constexpr absl::string_view kConvert = "convert it to UTF-8 first (iconv -t UTF-8)";

// Control bytes that texts have: tabs, line and page ends, backspace and escape of terminals.
bool IsControl(unsigned char byte) {
  if (byte >= 0x08 && byte <= 0x0d) return false;
  return (byte < 0x20 && byte != 0x1b) || byte == 0x7f;
}

// Without a mark of the byte order, most characters of Western texts have bytes of 0, at the same
// place in each.
std::optional<FileKind> WideText(std::string_view head) {
  size_t zeros[4] = {};
  for (size_t i = 0; i < head.size(); ++i) zeros[i % 4] += head[i] == 0 ? 1 : 0;
  const size_t units = head.size() / 4;
  if (units == 0) return std::nullopt;
  const auto often = [&zeros, units](size_t i) { return zeros[i] * 2 > units; };
  const auto never = [&zeros, units](size_t i) { return zeros[i] * 16 < units; };
  const bool wide_little = often(3) && often(2) && never(0);
  const bool wide_big = often(0) && often(1) && never(3);
  if (wide_little || wide_big) return FileKind{"UTF-32 without a byte order mark", kConvert};
  const bool little = often(1) && often(3) && never(0) && never(2);
  const bool big = often(0) && often(2) && never(1) && never(3);
  if (little || big) return FileKind{"UTF-16 without a byte order mark", kConvert};
  return std::nullopt;
}

int64_t SequencesIn(int64_t bytes, int64_t context) {
  return bytes > 0 ? (bytes - 1) / context : 0;
}

const char* UnitOf(const TextData& text) { return text.tokenizer.empty() ? "bytes" : "tokens"; }

// Of which each part that the job reads has one sequence and its target.
int64_t LeastTokens(const JobSpec& spec, int64_t context) {
  if (!spec.data.As<TextData>().test.empty()) return context + 1;
  const int64_t to_train = ((context + 1) * 10 + 8) / 9;  // of which 90 % are enough
  const int64_t to_hold_out = context * 10 + 1;           // of which the rest is enough
  return spec.evaluation.given() ? std::max(to_train, to_hold_out) : to_train;
}

std::string WhereText(const char* field, const std::string& path, int64_t tokens,
                      const char* unit) {
  return absl::StrCat("data.text.", field, " = \"", path, "\" of ", tokens, " ", unit);
}

constexpr char kNoEvaluation[] = "no evaluation (evaluation.every_steps, evaluation.every_epochs)";

}  // namespace

std::optional<FileKind> PlainlyNotText(std::string_view head) {
  const std::optional<FileKind> kind = FileKindOf(head);
  const bool data = kind.has_value() && kind->form == FileKind::Form::kData;
  if (data && !head.empty()) return kind;
  if (const std::optional<FileKind> wide = WideText(head); wide.has_value()) return wide;
  // One byte in nine of what is compressed or random, none of a text; a stray one is forgiven.
  const auto controls = static_cast<size_t>(std::count_if(head.begin(), head.end(), IsControl));
  if (controls * 50 > head.size()) return FileKind{"binary data", kGiveText};
  return std::nullopt;
}

absl::Status CheckIsText(const TextData& data, std::string_view head, const std::string& field) {
  if (data.bytes) return absl::OkStatus();
  const std::optional<FileKind> kind = PlainlyNotText(head.substr(0, kTextCheckBytes));
  if (!kind.has_value()) return absl::OkStatus();
  const absl::string_view remedy = kind->remedy.empty() ? kGiveText : kind->remedy;
  const char* const or_bytes =
      data.tokenizer.empty() ? ", or set data.text.bytes: true to train on its bytes as they are"
                             : "";
  return absl::InvalidArgumentError(
      absl::StrCat("data.text.", field, " = \"", ShownName(field == "test" ? data.test : data.path),
                   "\": looks like ", kind->name, " and not like text; ", remedy, or_bytes));
}

TextSplit SplitText(int64_t tokens, int64_t context, std::optional<int64_t> test) {
  TextSplit split;
  split.train_tokens = test.has_value() ? tokens : tokens / 10 * 9 + tokens % 10 * 9 / 10;
  split.train_sequences = SequencesIn(split.train_tokens, context);
  split.evaluation_sequences = SequencesIn(test.value_or(tokens - split.train_tokens), context);
  return split;
}

absl::Status CheckTextLength(const JobSpec& spec, int64_t context, int64_t tokens) {
  const auto text = spec.data.As<TextData>();
  const char* const unit = UnitOf(text);
  const std::string what = WhereText("path", text.path, tokens, unit);
  const std::string give =
      absl::StrCat("; give a text of at least ", LeastTokens(spec, context), " ", unit);
  const bool whole = !text.test.empty();
  const TextSplit split =
      SplitText(tokens, context, whole ? std::optional<int64_t>(context + 1) : std::nullopt);
  if (tokens == 0)
    return absl::InvalidArgumentError(absl::StrCat(what, ": the file is empty", give));
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

absl::Status CheckTestLength(const JobSpec& spec, int64_t context, int64_t tokens) {
  if (!spec.evaluation.given() || SequencesIn(tokens, context) >= 1) return absl::OkStatus();
  const auto text = spec.data.As<TextData>();
  const char* const unit = UnitOf(text);
  return absl::InvalidArgumentError(
      absl::StrCat(WhereText("test", text.test, tokens, unit), ": holds no sequence of ", context,
                   " tokens and one target; give a text of at least ", context + 1, " ", unit,
                   ", a smaller context, or ", kNoEvaluation));
}

}  // namespace stagecoach
