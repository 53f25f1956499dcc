#include "stage/tokens/byte_level/oniguruma_syntax.h"

#include <unicode/utf8.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/errors/status.h"
#include "base/utf8.h"
#include "stage/tokens/tokenizer_json/unicode_versions.h"

namespace stagecoach {
namespace {

constexpr size_t kMostPatternCharacters = 20'000;
constexpr size_t kMostPatternDepth = 30;  // groups, and classes, within each other
// In the place of a character that is none: a set, or nothing.
constexpr char32_t kNoCharacter = 0xffffffff;
constexpr int kMostRepetitions = 10'000;

constexpr std::string_view kCategories[] = {"l",  "lu", "ll", "lt", "lm", "lo", "m",  "mn", "mc",
                                            "me", "n",  "nd", "nl", "no", "p",  "pc", "pd", "ps",
                                            "pe", "pi", "pf", "po", "s",  "sm", "sc", "sk", "so",
                                            "z",  "zs", "zl", "zp", "c",  "cc", "cf", "cn", "co"};
constexpr std::pair<std::string_view, std::string_view> kCategoryNames[] = {
    {"letter", "l"},      {"mark", "m"},   {"number", "n"},
    {"punctuation", "p"}, {"symbol", "s"}, {"separator", "z"}};
constexpr std::string_view kScripts[] = {
    "arabic", "armenian", "bengali", "cyrillic", "devanagari", "georgian",
    "greek",  "han",      "hangul",  "hebrew",   "hiragana",   "katakana",
    "khmer",  "lao",      "latin",   "tamil",    "thai"};

std::u32string Characters(std::string_view text) {
  std::u32string characters;
  const auto size = static_cast<int32_t>(text.size());
  for (int32_t i = 0; i < size;) {
    UChar32 character = 0;
    U8_NEXT_OR_FFFD(text.data(), i, size, character);
    characters.push_back(static_cast<char32_t>(character));
  }
  return characters;
}

std::string Literal(char32_t character) {
  return absl::StrFormat("\\x{%x}", static_cast<uint32_t>(character));
}

// The characters of a category, as a class.
std::string Category(const std::string& name, bool negated) {
  const std::string category = CategoryClass(name);
  return negated ? absl::StrCat("[^", category, "]") : category;
}

class IcuTranslator {
 public:
  explicit IcuTranslator(std::string_view pattern) : pattern_(Characters(pattern)) {}

  absl::StatusOr<std::string> Run() {
    if (pattern_.size() > kMostPatternCharacters) {
      return absl::InvalidArgumentError(absl::StrCat(
          "a pattern of ", pattern_.size(), " characters; at most ", kMostPatternCharacters));
    }
    while (!AtEnd()) RETURN_IF_ERROR(Part());
    if (!groups_.empty()) return Refused(pattern_.size(), "a group that is not closed");
    return std::move(out_);
  }

 private:
  enum class Group : uint8_t { kPlain, kAssertion };

  bool AtEnd() const { return at_ == pattern_.size(); }
  bool Sees(std::u32string_view text) const {
    return std::u32string_view(pattern_).substr(at_).starts_with(text);
  }
  bool Take(std::u32string_view text) {
    const bool sees = Sees(text);
    if (sees) at_ += text.size();
    return sees;
  }

  absl::Status Refused(size_t from, const char* what) const {
    std::string part;
    for (size_t i = from; i < std::min(from + 8, pattern_.size()); ++i) {
      const char32_t c = pattern_[i];
      absl::StrAppend(&part, c < 0x7f ? std::string(1, static_cast<char>(c)) : Literal(c));
    }
    return absl::InvalidArgumentError(absl::StrCat("at character ", from + 1, ", \"",
                                                   ShownName(part), "\": ", what,
                                                   ", which is not supported"));
  }

  // A character, a class, the begin or end of a group, or a repetition.
  absl::Status Part() {
    const size_t from = at_;
    const char32_t c = pattern_[at_++];
    switch (c) {
      case U'\\':
        return Escape(from);
      case U'[': {
        ASSIGN_OR_RETURN(const std::string text, Class(from, 1));
        return Atom(text);
      }
      case U'(':
        return Open(from);
      case U')':
        if (groups_.empty()) return Refused(from, "the end of no group");
        out_ += ')';
        repeatable_ = groups_.back() == Group::kPlain;
        groups_.pop_back();
        return absl::OkStatus();
      case U'|':
        return Assertion("|");
      case U'.':
        return Atom("[^\\x{a}]");
      case U'^':
        return Assertion("(?:\\A|(?<=\\x{a})(?=[\\x{0}-\\x{10ffff}]))");
      case U'$':
        return Assertion("(?:\\z|(?=\\x{a}))");
      case U'*':
      case U'+':
      case U'?':
        return Repetition(from, std::string(1, static_cast<char>(c)), true);
      case U'{':
        if (const auto bounds = Bounds()) {
          if (bounds->first < 0) return Refused(from, "a repetition so often");
          return Repetition(from, BoundsText(*bounds), false);
        }
        return Atom(Literal(c));
      default:
        return Atom(Literal(c));
    }
  }

  absl::Status Atom(std::string_view text) {
    out_ += text;
    repeatable_ = true;
    return absl::OkStatus();
  }
  absl::Status Assertion(std::string_view text) {
    out_ += text;
    repeatable_ = false;
    return absl::OkStatus();
  }

  absl::Status Open(size_t from) {
    if (groups_.size() == kMostPatternDepth) return Refused(from, "a group in so many others");
    std::string_view text = "(?:";
    Group group = Group::kPlain;
    if (from == 0 && Take(U"?i)")) return Assertion("(?i)");
    if (Take(U"?i:")) {
      text = "(?i:";
    } else if (Take(U"?-i:")) {
      text = "(?-i:";
    } else if (Take(U"?>")) {
      text = "(?>";
    } else if (Sees(U"?=") || Sees(U"?!")) {
      text = Take(U"?=") ? "(?=" : (at_ += 2, "(?!");
      group = Group::kAssertion;
    } else if (Sees(U"?<=") || Sees(U"?<!")) {
      text = Take(U"?<=") ? "(?<=" : (at_ += 3, "(?<!");
      group = Group::kAssertion;
    } else if (Sees(U"?") && !Take(U"?:")) {
      return Refused(from, "a group of this kind");
    }
    groups_.push_back(group);
    return Assertion(text);
  }

  // Behind "{": the bounds of a repetition, -1 for none; the first is -1 if one is too large.
  std::optional<std::pair<int, int>> Bounds() {
    size_t at = at_;
    const auto number = [&]() -> std::optional<int> {
      const size_t begin = at;
      int value = 0;
      for (; at < pattern_.size() && pattern_[at] >= U'0' && pattern_[at] <= U'9'; ++at) {
        value = std::min(kMostRepetitions + 1, value * 10 + static_cast<int>(pattern_[at] - U'0'));
      }
      return at == begin ? std::nullopt : std::optional(value);
    };
    const std::optional<int> least = number();
    std::optional<int> most = least;
    const bool comma = at < pattern_.size() && pattern_[at] == U',';
    if (comma) {
      ++at;
      most = number();
    }
    if ((!least && !most) || at == pattern_.size() || pattern_[at] != U'}') return std::nullopt;
    at_ = at + 1;
    if (least.value_or(0) > kMostRepetitions || most.value_or(0) > kMostRepetitions)
      return {{-1, 0}};
    if (most && *most < least.value_or(0)) return {{-1, 0}};  // Oniguruma turns them round
    return {{least.value_or(0), most.value_or(-1)}};
  }
  static std::string BoundsText(const std::pair<int, int>& bounds) {
    const auto [least, most] = bounds;
    if (least == most) return absl::StrCat("{", least, "}");
    return absl::StrCat("{", least, ",", most < 0 ? "" : absl::StrCat(most), "}");
  }

  // sign: the text of one that is one sign, which "+" may follow.
  absl::Status Repetition(size_t from, const std::string& text, bool sign) {
    if (!repeatable_) return Refused(from, "a repetition of nothing");
    out_ += text;
    const bool exact = !sign && text.find(',') == text.npos;
    if (!exact && Take(U"?")) {
      out_ += '?';
    } else if (sign && Take(U"+")) {
      out_ += '+';
    }
    if (Sees(U"*") || Sees(U"+") || Sees(U"?"))
      return Refused(from, "a repetition of a repetition");
    const size_t here = at_;
    if (Take(U"{") && Bounds()) return Refused(from, "a repetition of a repetition");
    at_ = here;
    repeatable_ = false;
    return absl::OkStatus();
  }

  // Behind "\" outside of a class.
  absl::Status Escape(size_t from) {
    if (Take(U"A")) return Assertion("\\A");
    if (Take(U"z")) return Assertion("\\z");
    ASSIGN_OR_RETURN(const std::optional<std::string> set, EscapedSet(from, /*in_class=*/false));
    if (set) return Atom(*set);
    ASSIGN_OR_RETURN(const char32_t character, EscapedCharacter(from));
    return Atom(Literal(character));
  }

  // "\s", "\p{L}" and their like.
  absl::StatusOr<std::optional<std::string>> EscapedSet(size_t from, bool in_class) {
    for (const bool negated : {false, true}) {
      const char* const no = negated ? "^" : "";
      if (Take(negated ? U"S" : U"s")) return absl::StrCat("[", no, "\\p{White_Space}]");
      if (Take(negated ? U"D" : U"d")) return Category("nd", negated);
      if (Take(negated ? U"W" : U"w")) {
        return absl::StrCat("[", no, WordClass(in_class), "]");
      }
    }
    const bool negated = Sees(U"P{");
    if (!Take(U"p{") && !Take(U"P{")) return std::nullopt;
    return Property(from, negated);
  }

  absl::StatusOr<std::optional<std::string>> Property(size_t from, bool negated) {
    if (Take(U"^")) negated = !negated;
    std::string name;
    while (!AtEnd() && pattern_[at_] != U'}' && name.size() < 40) {
      const char32_t c = pattern_[at_++];
      if (c == U' ' || c == U'_' || c == U'-') continue;
      name += c < 0x80 ? absl::ascii_tolower(static_cast<unsigned char>(c)) : '?';
    }
    if (!Take(U"}")) return Refused(from, "a property without a name");
    for (const auto& [whole, category] : kCategoryNames) {
      if (name == whole) name = category;
    }
    if (std::ranges::find(kCategories, name) != std::end(kCategories)) {
      return Category(name, negated);
    }
    if (std::ranges::find(kScripts, name) != std::end(kScripts)) {
      return absl::StrCat("[", negated ? "^" : "", ScriptClass(name), "]");
    }
    return Refused(from, "this property");
  }

  absl::StatusOr<char32_t> EscapedCharacter(size_t from) {
    if (AtEnd()) return Refused(from, "a pattern that ends so");
    const char32_t c = pattern_[at_++];
    constexpr std::u32string_view kNames = U"tnvfrae", kCharacters = U"\t\n\v\f\r\a\x1b";
    if (const size_t found = kNames.find(c); found != kNames.npos) return kCharacters[found];
    const auto hex = [this](size_t most) {
      std::optional<uint32_t> value;
      for (; most > 0 && !AtEnd() && pattern_[at_] < 0x80 &&
             absl::ascii_isxdigit(static_cast<unsigned char>(pattern_[at_]));
           --most, ++at_) {
        const char digit = absl::ascii_tolower(static_cast<unsigned char>(pattern_[at_]));
        value = value.value_or(0) * 16 +
                static_cast<uint32_t>(digit <= '9' ? digit - '0' : digit - 'a' + 10);
      }
      return value;
    };
    std::optional<uint32_t> value;
    if (c == U'x' && Take(U"{")) {
      value = hex(8);
      if (!Take(U"}")) value.reset();
    } else if (c == U'x') {
      value = hex(2);
      if (value.value_or(0) > 0x7f) value.reset();  // a byte of a character
    } else if (c == U'u') {
      const size_t begin = at_;
      value = hex(4);
      if (at_ != begin + 4) value.reset();
    } else if (c < 0x80 && !absl::ascii_isalnum(static_cast<unsigned char>(c))) {
      value = c;
    }
    if (!value || *value > 0x10ffff || (*value >= 0xd800 && *value < 0xe000)) {
      return Refused(from, "an escape of this kind");
    }
    return *value;
  }

  // Behind "[".
  absl::StatusOr<std::string> Class(size_t from, size_t depth) {
    if (depth > kMostPatternDepth) return Refused(from, "a class in so many others");
    const bool negated = Take(U"^");
    std::vector<std::string> sides(1);  // of "&&"
    char32_t before = kNoCharacter;     // with which a range may begin
    while (true) {
      if (AtEnd()) return Refused(from, "a class that is not closed");
      if (Take(U"]")) break;
      if (Sees(U"[:")) return Refused(at_, "a class of POSIX");
      if (Take(U"&&")) {
        if (sides.back().empty()) return Refused(from, "an empty class");
        sides.emplace_back();
        before = kNoCharacter;
        continue;
      }
      const size_t here = at_;
      if (before != kNoCharacter && Sees(U"-") && !Sees(U"-]") && !Sees(U"-&&")) {
        ++at_;
        ASSIGN_OR_RETURN(const char32_t last, ClassItem(here, depth, &sides.back(), true));
        if (last < before) return Refused(here, "a range from a greater to a smaller character");
        absl::StrAppend(&sides.back(), "-", Literal(last));
        before = kNoCharacter;
        continue;
      }
      ASSIGN_OR_RETURN(before, ClassItem(here, depth, &sides.back(), false));
      if (before != kNoCharacter) sides.back() += Literal(before);
    }
    if (sides.back().empty()) return Refused(from, "an empty class");
    std::string text = sides.size() == 1 ? sides.front() : "";
    if (sides.size() > 1) {
      for (const std::string& side : sides) {
        absl::StrAppend(&text, text.empty() ? "[" : "&&", "[", side, "]");
      }
      text += ']';
    }
    return absl::StrCat("[", negated ? "^" : "", text, "]");
  }

  // The next item: a character, or a set, which goes to `side`. character_only: the end of a range.
  absl::StatusOr<char32_t> ClassItem(size_t from, size_t depth, std::string* side,
                                     bool character_only) {
    if (character_only && (Sees(U"[") || AtEnd())) return Refused(from, "a range without an end");
    if (Take(U"[")) {
      ASSIGN_OR_RETURN(const std::string inner, Class(from, depth + 1));
      *side += inner;
      return kNoCharacter;
    }
    if (!Take(U"\\")) return pattern_[at_++];
    ASSIGN_OR_RETURN(const std::optional<std::string> set, EscapedSet(from, /*in_class=*/true));
    if (!set) return EscapedCharacter(from);
    if (character_only) return Refused(from, "a range without an end");
    *side += *set;
    return kNoCharacter;
  }

  const std::u32string pattern_;
  size_t at_ = 0;
  std::string out_;
  std::vector<Group> groups_;  // those that are open
  bool repeatable_ = false;    // what stands before
};

}  // namespace

absl::StatusOr<std::string> IcuPattern(std::string_view pattern) {
  return IcuTranslator(pattern).Run();
}

std::string IcuPatternOfText(std::string_view text) {
  std::string pattern;
  for (const char32_t character : Characters(text)) pattern += Literal(character);
  return pattern;
}

}  // namespace stagecoach
