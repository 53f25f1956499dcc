#include "scores/code_points.h"

#include <cstdint>

namespace stagecoach {
namespace {

constexpr char32_t kMalformed = 0x110000;  // plus the byte

}  // namespace

CodePoint CodePointAt(std::string_view text, size_t at) {
  const auto lead = static_cast<uint8_t>(text[at]);
  if (lead < 0x80) return {lead, 1};
  const size_t bytes = lead < 0xC2 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : lead < 0xF5 ? 4 : 1;
  if (bytes == 1 || at + bytes > text.size()) return {kMalformed + lead, 1};
  char32_t value = lead & (0xFFU >> (bytes + 1));
  for (size_t i = at + 1; i < at + bytes; ++i) {
    const auto next = static_cast<uint8_t>(text[i]);
    if ((next & 0xC0) != 0x80) return {kMalformed + lead, 1};
    value = (value << 6) | (next & 0x3F);
  }
  return {value, bytes};
}

void AppendCodePoint(char32_t value, std::string* text) {
  const auto append = [text](char32_t byte) { text->push_back(static_cast<char>(byte)); };
  if (value >= kMalformed) return append(value - kMalformed);
  if (value < 0x80) return append(value);
  if (value < 0x800) {
    append(0xC0 | (value >> 6));
  } else {
    if (value < 0x10000) {
      append(0xE0 | (value >> 12));
    } else {
      append(0xF0 | (value >> 18));
      append(0x80 | ((value >> 12) & 0x3F));
    }
    append(0x80 | ((value >> 6) & 0x3F));
  }
  append(0x80 | (value & 0x3F));
}

bool IsWhiteSpace(char32_t value) {
  return (value >= 0x09 && value <= 0x0D) || (value >= 0x1C && value <= 0x20) || value == 0x85 ||
         value == 0xA0 || value == 0x1680 || (value >= 0x2000 && value <= 0x200A) ||
         value == 0x2028 || value == 0x2029 || value == 0x202F || value == 0x205F ||
         value == 0x3000;
}

std::vector<std::string_view> SplitWords(std::string_view text) {
  std::vector<std::string_view> words;
  size_t begin = 0;
  const auto end_word = [&](size_t end) {
    if (end > begin) words.push_back(text.substr(begin, end - begin));
  };
  for (size_t i = 0; i < text.size();) {
    const CodePoint point = CodePointAt(text, i);
    if (IsWhiteSpace(point.value)) {
      end_word(i);
      begin = i + point.bytes;
    }
    i += point.bytes;
  }
  end_word(text.size());
  return words;
}

std::string_view WithoutTrailingSpace(std::string_view text) {
  size_t end = 0;
  for (size_t i = 0; i < text.size();) {
    const CodePoint point = CodePointAt(text, i);
    i += point.bytes;
    if (!IsWhiteSpace(point.value)) end = i;
  }
  return text.substr(0, end);
}

}  // namespace stagecoach
