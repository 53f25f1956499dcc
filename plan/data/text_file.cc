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

CountedTokens Counted(const TextData& text, const char* field, const std::string& path,
                      int64_t tokens) {
  return {.where = absl::StrCat("data.text.", field, " = \"", path, "\""),
          .tokens = tokens,
          .unit = text.tokenizer.empty() ? "bytes" : "tokens",
          .has_test = !text.test.empty()};
}

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

absl::Status CheckTokenizerHead(const std::string& where, std::string_view head) {
  if (head.starts_with('{')) return absl::OkStatus();
  const std::string other = OtherKindText(head.substr(0, kFileKindBytes), "a SentencePiece model");
  if (other.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(where, ": ", other));
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

absl::Status CheckTextLength(const JobSpec& spec, int64_t context, int64_t tokens) {
  const auto text = spec.data.As<TextData>();
  return CheckTrainTokens(Counted(text, "path", text.path, tokens), spec, context);
}

absl::Status CheckTestLength(const JobSpec& spec, int64_t context, int64_t tokens) {
  const auto text = spec.data.As<TextData>();
  return CheckTestTokens(Counted(text, "test", text.test, tokens), spec, context);
}

}  // namespace stagecoach
