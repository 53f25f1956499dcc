#include "services/cli/spec/strange_characters.h"

#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "services/cli/spec/yaml_tree.h"

namespace stagecoach {
namespace {

struct Strange {
  std::string_view bytes;
  const char* name;
};
constexpr Strange kStrange[] = {
    {"\t", "a tab, U+0009"},
    {"\u00a0", "a no-break space, U+00A0"},
    {"\u00ad", "a soft hyphen, U+00AD"},
    {"\u1680", "an ogham space, U+1680"},
    {"\u2000", "an en quad, U+2000"},
    {"\u2001", "an em quad, U+2001"},
    {"\u2002", "an en space, U+2002"},
    {"\u2003", "an em space, U+2003"},
    {"\u2004", "a three-per-em space, U+2004"},
    {"\u2005", "a four-per-em space, U+2005"},
    {"\u2006", "a six-per-em space, U+2006"},
    {"\u2007", "a figure space, U+2007"},
    {"\u2008", "a punctuation space, U+2008"},
    {"\u2009", "a thin space, U+2009"},
    {"\u200a", "a hair space, U+200A"},
    {"\u200b", "a zero-width space, U+200B"},
    {"\u200c", "a zero-width non-joiner, U+200C"},
    {"\u200d", "a zero-width joiner, U+200D"},
    {"\u202f", "a narrow no-break space, U+202F"},
    {"\u205f", "a mathematical space, U+205F"},
    {"\u2060", "a word joiner, U+2060"},
    {"\u3000", "an ideographic space, U+3000"},
    {"\ufeff", "a byte order mark, U+FEFF"},
};

const Strange* StrangeAt(std::string_view text) {
  for (const Strange& strange : kStrange) {
    if (text.starts_with(strange.bytes)) return &strange;
  }
  return nullptr;
}

}  // namespace

absl::Status FindStrange(const std::string& text, const std::string& file, int first, int last) {
  Position here{1, 1};
  bool indent = true, comment = false;
  char quote = 0, before = ' ';
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool begins = (c & 0xc0) != 0x80;  // a character
    if (begins && i > 0 && text[i - 1] != '\n') ++here.column;
    const Strange* const strange = StrangeAt(std::string_view(text).substr(i));
    const bool tab = c == '\t';
    if (strange != nullptr && here.line >= first && here.line <= last && !comment && quote == 0 &&
        (!tab || indent)) {
      return ErrorAt(
          file, here,
          absl::StrCat(strange->name, ", stands here; YAML takes blanks, U+0020, alone"));
    }
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if ((c == '"' || c == '\'') && !absl::ascii_isalnum(before)) {
      quote = c;
    }
    comment = comment || (c == '#' && absl::ascii_isspace(before));
    indent = indent && (c == ' ' || tab);
    before = c;
    if (c != '\n') continue;
    here = {here.line + 1, 1};
    indent = true;
    comment = false;
    quote = 0;
  }
  return absl::OkStatus();
}

std::string StrangeText(const std::string& text) {
  for (size_t i = 0; i < text.size(); ++i) {
    const Strange* const strange = StrangeAt(std::string_view(text).substr(i));
    if (strange != nullptr) return absl::StrCat(" (it has ", strange->name, ")");
  }
  return "";
}

}  // namespace stagecoach
