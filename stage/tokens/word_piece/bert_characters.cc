#include "stage/tokens/word_piece/bert_characters.h"

#include <unicode/uchar.h>
#include <unicode/utf8.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/strings/ascii.h"

namespace stagecoach {
namespace {

// Whether Unicode 8.0 has the character, in one of these categories of today.
bool HasOldCategory(char32_t character, uint32_t mask) {
  const auto c = static_cast<UChar32>(character);
  if ((U_GET_GC_MASK(c) & mask) == 0) return false;
  UVersionInfo age;
  u_charAge(c, age);
  return age[0] < 8 || (age[0] == 8 && age[1] == 0);
}

template <size_t size>
bool IsAmong(const std::array<char32_t, size>& some, char32_t character) {
  return std::ranges::find(some, character) != some.end();
}

// Their category is another one in later versions.
constexpr std::array<char32_t, 2> kOnceAccents = {0x1734, 0x1171e};
constexpr std::array<char32_t, 4> kOnceNoAccents = {0x1885, 0x1886, 0xa9bd, 0x111c9};
constexpr std::array<char32_t, 2> kOncePunctuation = {0x166d, 0x111c9};

struct Range {
  char32_t first, last;
};
constexpr Range kIdeographs[] = {{0x3400, 0x4dbf},   {0x4e00, 0x9fff},   {0xf900, 0xfaff},
                                 {0x20000, 0x2a6df}, {0x2a700, 0x2b81f}, {0x2b920, 0x2ceaf},
                                 {0x2f800, 0x2fa1f}};

struct NewerLowercase {
  char32_t first, last;
  char32_t lowercase;  // of the first
};
// Letters that are new in 16.0 and 17.0.
constexpr NewerLowercase kNewerLowercase[] = {
    {0x1c89, 0x1c89, 0x1c8a},    {0xa7cb, 0xa7cb, 0x264},  {0xa7cc, 0xa7cc, 0xa7cd},
    {0xa7ce, 0xa7ce, 0xa7cf},    {0xa7d2, 0xa7d2, 0xa7d3}, {0xa7d4, 0xa7d4, 0xa7d5},
    {0xa7da, 0xa7da, 0xa7db},    {0xa7dc, 0xa7dc, 0x19b},  {0x10d50, 0x10d65, 0x10d70},
    {0x16ea0, 0x16eb8, 0x16ebb},
};

constexpr char32_t kCapitalIWithDot = 0x130;

}  // namespace

bool IsBertControl(char32_t character) {
  if (character == '\t' || character == '\n' || character == '\r') return false;
  return HasOldCategory(character, U_GC_CC_MASK | U_GC_CF_MASK | U_GC_CO_MASK);
}

bool IsBertPunctuation(char32_t character) {
  if (character < 0x80) return absl::ascii_ispunct(static_cast<unsigned char>(character));
  return HasOldCategory(character, U_GC_P_MASK) || IsAmong(kOncePunctuation, character);
}

bool IsBertIdeograph(char32_t character) {
  return std::ranges::any_of(kIdeographs, [character](const Range& range) {
    return character >= range.first && character <= range.last;
  });
}

bool IsBertAccent(char32_t character) {
  if (IsAmong(kOnceAccents, character)) return true;
  return HasOldCategory(character, U_GC_MN_MASK) && !IsAmong(kOnceNoAccents, character);
}

void AppendLowercase(char32_t character, std::string* text) {
  // The only letter whose lower case is two characters.
  if (character == kCapitalIWithDot) return static_cast<void>(text->append("i\u0307"));
  for (const NewerLowercase& range : kNewerLowercase) {
    if (character < range.first || character > range.last) continue;
    return AppendCharacter(range.lowercase + (character - range.first), text);
  }
  AppendCharacter(static_cast<char32_t>(u_tolower(static_cast<UChar32>(character))), text);
}

void AppendCharacter(char32_t character, std::string* text) {
  std::array<char, U8_MAX_LENGTH> bytes{};
  size_t size = 0;
  U8_APPEND_UNSAFE(bytes.data(), size, static_cast<uint32_t>(character));
  text->append(bytes.data(), size);
}

void ForEachCharacter(std::string_view text,
                      absl::FunctionRef<void(char32_t, std::string_view)> take) {
  const auto size = static_cast<int32_t>(text.size());
  for (int32_t i = 0; i < size;) {
    const auto begin = static_cast<size_t>(i);
    UChar32 character = 0;
    U8_NEXT_OR_FFFD(text.data(), i, size, character);
    take(static_cast<char32_t>(character), text.substr(begin, static_cast<size_t>(i) - begin));
  }
}

}  // namespace stagecoach
