#include "scores/tokenize_13a.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "scores/ngrams.h"

namespace stagecoach {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsPeriodOrComma(char c) { return c == '.' || c == ','; }

// ASCII's punctuation, and the blank, without ' , - and period.
bool IsAlwaysToken(char c) {
  return (c >= '{' && c <= '~') || (c >= '[' && c <= '`') || (c >= ' ' && c <= '&') ||
         (c >= '(' && c <= '+') || (c >= ':' && c <= '@') || c == '/';
}

// The entities one after another: "&amp;lt;" becomes "<".
std::string Unescaped(const std::string& text) {
  std::string line = absl::StrReplaceAll(text, {{"<skipped>", ""}});
  line = absl::StrReplaceAll(line, {{"-\n", ""}});
  line = absl::StrReplaceAll(line, {{"\n", " "}});
  line = absl::StrReplaceAll(line, {{"&quot;", "\""}});
  line = absl::StrReplaceAll(line, {{"&amp;", "&"}});
  line = absl::StrReplaceAll(line, {{"&lt;", "<"}});
  return absl::StrReplaceAll(line, {{"&gt;", ">"}});
}

std::string SplitPunctuation(std::string_view line) {
  std::string split;
  for (const char c : line) {
    if (IsAlwaysToken(c)) {
      split.append({' ', c, ' '});
    } else {
      split.push_back(c);
    }
  }
  return split;
}

// Replaces, from the left and without overlap, each pair of bytes for which `matches` holds. Bytes
// do: in UTF-8 neither a digit nor a mark is part of another code point.
template <typename Matches, typename Replace>
std::string ReplacePairs(std::string_view line, Matches matches, Replace replace) {
  std::string replaced;
  for (size_t i = 0; i < line.size(); ++i) {
    if (i + 1 < line.size() && matches(line[i], line[i + 1])) {
      replace(line[i], line[i + 1], &replaced);
      ++i;
    } else {
      replaced.push_back(line[i]);
    }
  }
  return replaced;
}

}  // namespace

std::string Tokenize13a(std::string_view text) {
  std::string line = SplitPunctuation(absl::StrCat(" ", Unescaped(std::string(text)), " "));
  line = ReplacePairs(
      line, [](char a, char b) { return !IsDigit(a) && IsPeriodOrComma(b); },
      [](char a, char b, std::string* out) {
        out->append({a, ' ', b, ' '});
      });
  line = ReplacePairs(
      line, [](char a, char b) { return IsPeriodOrComma(a) && !IsDigit(b); },
      [](char a, char b, std::string* out) {
        out->append({' ', a, ' ', b});
      });
  line = ReplacePairs(
      line, [](char a, char b) { return IsDigit(a) && b == '-'; },
      [](char a, char b, std::string* out) {
        out->append({a, ' ', b, ' '});
      });
  return WordUnits(line).text;
}

}  // namespace stagecoach
