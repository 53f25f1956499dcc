#include "stage/tokens/tokenizer_json/unicode_versions.h"

#include <unicode/uchar.h>

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace stagecoach {
namespace {

struct NewerRange {
  char32_t first, last;
  std::string_view category;
};

// What is new in 15.1 and 16.0, and U+1171E, whose category 16.0 changed: in order.
constexpr NewerRange kNewerRanges[] = {
    {0x897, 0x897, "mn"},     {0x1b4e, 0x1b4f, "po"},   {0x1b7f, 0x1b7f, "po"},
    {0x1c89, 0x1c89, "lu"},   {0x1c8a, 0x1c8a, "ll"},   {0x2427, 0x2429, "so"},
    {0x2ffc, 0x2fff, "so"},   {0x31e4, 0x31e5, "so"},   {0x31ef, 0x31ef, "so"},
    {0xa7cb, 0xa7cc, "lu"},   {0xa7cd, 0xa7cd, "ll"},   {0xa7da, 0xa7da, "lu"},
    {0xa7db, 0xa7db, "ll"},   {0xa7dc, 0xa7dc, "lu"},   {0x105c0, 0x105f3, "lo"},
    {0x10d40, 0x10d49, "nd"}, {0x10d4a, 0x10d4d, "lo"}, {0x10d4e, 0x10d4e, "lm"},
    {0x10d4f, 0x10d4f, "lo"}, {0x10d50, 0x10d65, "lu"}, {0x10d69, 0x10d6d, "mn"},
    {0x10d6e, 0x10d6e, "pd"}, {0x10d6f, 0x10d6f, "lm"}, {0x10d70, 0x10d85, "ll"},
    {0x10d8e, 0x10d8f, "sm"}, {0x10ec2, 0x10ec4, "lo"}, {0x10efc, 0x10efc, "mn"},
    {0x11380, 0x11389, "lo"}, {0x1138b, 0x1138b, "lo"}, {0x1138e, 0x1138e, "lo"},
    {0x11390, 0x113b5, "lo"}, {0x113b7, 0x113b7, "lo"}, {0x113b8, 0x113ba, "mc"},
    {0x113bb, 0x113c0, "mn"}, {0x113c2, 0x113c2, "mc"}, {0x113c5, 0x113c5, "mc"},
    {0x113c7, 0x113ca, "mc"}, {0x113cc, 0x113cd, "mc"}, {0x113ce, 0x113ce, "mn"},
    {0x113cf, 0x113cf, "mc"}, {0x113d0, 0x113d0, "mn"}, {0x113d1, 0x113d1, "lo"},
    {0x113d2, 0x113d2, "mn"}, {0x113d3, 0x113d3, "lo"}, {0x113d4, 0x113d5, "po"},
    {0x113d7, 0x113d8, "po"}, {0x113e1, 0x113e2, "mn"}, {0x116d0, 0x116e3, "nd"},
    {0x1171e, 0x1171e, "mc"}, {0x11bc0, 0x11be0, "lo"}, {0x11be1, 0x11be1, "po"},
    {0x11bf0, 0x11bf9, "nd"}, {0x11f5a, 0x11f5a, "mn"}, {0x13460, 0x143fa, "lo"},
    {0x16100, 0x1611d, "lo"}, {0x1611e, 0x16129, "mn"}, {0x1612a, 0x1612c, "mc"},
    {0x1612d, 0x1612f, "mn"}, {0x16130, 0x16139, "nd"}, {0x16d40, 0x16d42, "lm"},
    {0x16d43, 0x16d6a, "lo"}, {0x16d6b, 0x16d6c, "lm"}, {0x16d6d, 0x16d6f, "po"},
    {0x16d70, 0x16d79, "nd"}, {0x18cff, 0x18cff, "lo"}, {0x1cc00, 0x1ccef, "so"},
    {0x1ccf0, 0x1ccf9, "nd"}, {0x1cd00, 0x1ceb3, "so"}, {0x1e5d0, 0x1e5ed, "lo"},
    {0x1e5ee, 0x1e5ef, "mn"}, {0x1e5f0, 0x1e5f0, "lo"}, {0x1e5f1, 0x1e5fa, "nd"},
    {0x1e5ff, 0x1e5ff, "po"}, {0x1f8b2, 0x1f8bb, "so"}, {0x1f8c0, 0x1f8c1, "so"},
    {0x1fa89, 0x1fa89, "so"}, {0x1fa8f, 0x1fa8f, "so"}, {0x1fabe, 0x1fabe, "so"},
    {0x1fac6, 0x1fac6, "so"}, {0x1fadc, 0x1fadc, "so"}, {0x1fadf, 0x1fadf, "so"},
    {0x1fae9, 0x1fae9, "so"}, {0x1fbcb, 0x1fbef, "so"}, {0x2ebf0, 0x2ee5d, "lo"}};

// Numbers that are new in 17.0.
constexpr NewerRange kNumbersOf17[] = {{0x11de0, 0x11de9, "nd"}, {0x16ff4, 0x16ff6, "nl"}};

// Fractions and superscripts of Latin-1, which a "\w" of Oniguruma has too that is in no class.
constexpr char kNumbersOfLatin1[] = "\\x{b2}\\x{b3}\\x{b9}\\x{bc}-\\x{be}";
// Ideographs of 15.1.
constexpr char kNewerHan[] = "\\x{2ebf0}-\\x{2ee5d}";

const NewerRange* FindNewer(char32_t character) {
  const auto* const range =
      std::ranges::lower_bound(kNewerRanges, character, {}, &NewerRange::last);
  return range != std::end(kNewerRanges) && range->first <= character ? range : nullptr;
}

std::string NewerClass(std::string_view category) {
  std::string text;
  for (const NewerRange& range : kNewerRanges) {
    if (!range.category.starts_with(category)) continue;
    absl::StrAppendFormat(&text, "\\x{%x}-\\x{%x}", static_cast<uint32_t>(range.first),
                          static_cast<uint32_t>(range.last));
  }
  return text;
}

bool HasCategory(char32_t character, std::string_view ours, uint32_t icu) {
  if (const NewerRange* const newer = FindNewer(character)) {
    return newer->category.starts_with(ours);
  }
  return (U_GET_GC_MASK(static_cast<UChar32>(character)) & icu) != 0;
}

}  // namespace

std::string CategoryClass(const std::string& category) {
  return absl::StrCat("[[\\p{gc=", category, "}--[", NewerClass(""), "]]", NewerClass(category),
                      "]");
}

std::string ScriptClass(const std::string& script) {
  return absl::StrCat("[\\p{sc=", script, "}", script == "han" ? kNewerHan : "", "]");
}

std::string WordClass(bool in_class) {
  std::string text = absl::StrCat("[\\p{Alphabetic}", in_class ? "" : kNumbersOfLatin1);
  for (const char* const category : {"l", "m", "nd", "nl", "pc"}) text += CategoryClass(category);
  return text + "]";
}

bool IsUnicodeNumber(char32_t character) {
  for (const NewerRange& range : kNumbersOf17) {
    if (character >= range.first && character <= range.last) return true;
  }
  return HasCategory(character, "n", U_GC_N_MASK);
}

bool IsUnicodeWord(char32_t character) {
  const auto c = static_cast<UChar32>(character);
  return u_hasBinaryProperty(c, UCHAR_ALPHABETIC) != 0 ||
         u_hasBinaryProperty(c, UCHAR_JOIN_CONTROL) != 0 ||
         HasCategory(character, "l", U_GC_L_MASK) || HasCategory(character, "m", U_GC_M_MASK) ||
         HasCategory(character, "nd", U_GC_ND_MASK) || HasCategory(character, "pc", U_GC_PC_MASK);
}

bool IsUnicodeSpace(char32_t character) {
  return u_isUWhiteSpace(static_cast<UChar32>(character)) != 0;
}

}  // namespace stagecoach
