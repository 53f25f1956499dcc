#include "plan/data/text_check.h"

#include <algorithm>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"

namespace stagecoach {
namespace {

using std::string_view_literals::operator""sv;

constexpr char kUnpack[] = "unpack it first";
constexpr char kConvert[] = "convert it to UTF-8 first (iconv -t UTF-8)";
constexpr char kGiveText[] = "give a text file";

struct Kind {
  const char* looks_like;
  const char* remedy;
};

struct Magic {
  size_t offset;
  std::string_view bytes;
  Kind kind;
};

// Long ones before their beginnings. Of the rest of binary formats the control bytes tell.
constexpr Magic kMagics[] = {
    {0, "\x1f\x8b"sv, {"gzip data", kUnpack}},
    {0, "\x28\xb5\x2f\xfd"sv, {"zstd data", kUnpack}},
    {0,
     "\xfd"sv
     "7zXZ\0"sv,
     {"xz data", kUnpack}},
    {0, "\x04\x22\x4d\x18"sv, {"lz4 data", kUnpack}},
    {0, "PK\x03\x04"sv, {"a zip archive", kUnpack}},
    {0, "PK\x05\x06"sv, {"a zip archive", kUnpack}},
    {0, "7z\xbc\xaf\x27\x1c"sv, {"a 7z archive", kUnpack}},
    {0, "Rar!\x1a\x07"sv, {"a rar archive", kUnpack}},
    {257, "ustar"sv, {"a tar archive", kUnpack}},
    {0,
     "\x7f"
     "ELF"sv,
     {"a program (ELF)", kGiveText}},
    {0, "%PDF-"sv, {"a PDF document", "extract its text first (pdftotext)"}},
    {0, "\x89PNG\r\n"sv, {"a PNG picture", kGiveText}},
    {0, "\xff\xd8\xff"sv, {"a JPEG picture", kGiveText}},
    {0, "GIF87a"sv, {"a GIF picture", kGiveText}},
    {0, "GIF89a"sv, {"a GIF picture", kGiveText}},
    {0, "SQLite format 3\0"sv, {"an SQLite database", kGiveText}},
    {0, "\xff\xfe\0\0"sv, {"UTF-32", kConvert}},
    {0, "\0\0\xfe\xff"sv, {"UTF-32", kConvert}},
    {0, "\xff\xfe"sv, {"UTF-16", kConvert}},
    {0, "\xfe\xff"sv, {"UTF-16", kConvert}},
};

// "BZh" alone may begin a text.
bool IsBzip2(std::string_view head) {
  return head.size() >= 10 && head.starts_with("BZh") && head[3] >= '1' && head[3] <= '9' &&
         head.substr(4, 6) == "1AY&SY";
}

// Control bytes that texts have: tabs, line and page ends, backspace and escape of terminals.
bool IsControl(unsigned char byte) {
  if (byte >= 0x08 && byte <= 0x0d) return false;
  return (byte < 0x20 && byte != 0x1b) || byte == 0x7f;
}

// Without a mark of the byte order, most characters of Western texts have bytes of 0, at the same
// place in each.
std::optional<Kind> WideText(std::string_view head) {
  size_t zeros[4] = {};
  for (size_t i = 0; i < head.size(); ++i) zeros[i % 4] += head[i] == 0 ? 1 : 0;
  const size_t units = head.size() / 4;
  if (units == 0) return std::nullopt;
  const auto often = [&zeros, units](size_t i) { return zeros[i] * 2 > units; };
  const auto never = [&zeros, units](size_t i) { return zeros[i] * 16 < units; };
  const bool wide_little = often(3) && often(2) && never(0);
  const bool wide_big = often(0) && often(1) && never(3);
  if (wide_little || wide_big) return Kind{"UTF-32 without a byte order mark", kConvert};
  const bool little = often(1) && often(3) && never(0) && never(2);
  const bool big = often(0) && often(2) && never(1) && never(3);
  if (little || big) return Kind{"UTF-16 without a byte order mark", kConvert};
  return std::nullopt;
}

std::optional<Kind> ByMagic(std::string_view head) {
  for (const Magic& magic : kMagics) {
    if (head.size() >= magic.offset && head.substr(magic.offset).starts_with(magic.bytes)) {
      return magic.kind;
    }
  }
  if (IsBzip2(head)) return Kind{"bzip2 data", kUnpack};
  return std::nullopt;
}

std::optional<Kind> PlainlyNotText(std::string_view head) {
  if (const std::optional<Kind> kind = ByMagic(head); kind.has_value()) return kind;
  if (const std::optional<Kind> wide = WideText(head); wide.has_value()) return wide;
  // One byte in nine of what is compressed or random, none of a text; a stray one is forgiven.
  const auto controls = static_cast<size_t>(std::count_if(head.begin(), head.end(), IsControl));
  if (controls * 50 > head.size()) return Kind{"binary data", kGiveText};
  return std::nullopt;
}

}  // namespace

std::string PackedAs(std::string_view head) {
  const std::optional<Kind> kind = ByMagic(head);
  return kind.has_value() && kind->remedy == kUnpack ? kind->looks_like : "";
}

absl::Status CheckIsText(const TextData& data, std::string_view head) {
  if (data.bytes) return absl::OkStatus();
  const std::optional<Kind> kind = PlainlyNotText(head.substr(0, kTextCheckBytes));
  if (!kind.has_value()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "data.text.path = \"", data.path, "\": looks like ", kind->looks_like, " and not like text; ",
      kind->remedy, ", or set data.text.bytes: true to train on its bytes as they are"));
}

}  // namespace stagecoach
