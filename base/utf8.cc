#include "base/utf8.h"

#include <cstddef>
#include <cstdint>

#include "absl/strings/str_format.h"

namespace stagecoach {
namespace {

// Length of the sequence that begins with this byte; 0 if none does.
int SequenceLength(uint8_t lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return 2;
  if (lead >= 0xE0 && lead <= 0xEF) return 3;
  if (lead >= 0xF0 && lead <= 0xF4) return 4;
  return 0;
}

// The second byte rules out overlong forms, surrogates and what lies above U+10FFFF.
bool SecondByteFits(uint8_t lead, uint8_t second) {
  if (lead == 0xE0) return second >= 0xA0 && second <= 0xBF;
  if (lead == 0xED) return second >= 0x80 && second <= 0x9F;
  if (lead == 0xF0) return second >= 0x90 && second <= 0xBF;
  if (lead == 0xF4) return second >= 0x80 && second <= 0x8F;
  return second >= 0x80 && second <= 0xBF;
}

// Of the whole sequence that stands there; 0 if none does.
size_t SequenceAt(std::string_view text, size_t i) {
  const auto lead = static_cast<uint8_t>(text[i]);
  const int length = SequenceLength(lead);
  if (length == 0 || i + length > text.size()) return 0;
  if (length > 1 && !SecondByteFits(lead, static_cast<uint8_t>(text[i + 1]))) return 0;
  for (int j = 2; j < length; ++j) {
    if ((static_cast<uint8_t>(text[i + j]) & 0xC0) != 0x80) return 0;
  }
  return static_cast<size_t>(length);
}

bool IsControl(char c) { return static_cast<uint8_t>(c) < 0x20 || c == 0x7f; }

// Commands to terminals beyond ASCII: C1 controls (U+009B is an escape sequence's beginning), other
// lines' ends, and what turns the direction of writing, so that a text reads as another one.
bool IsHiddenCommand(std::string_view sequence) {
  if (sequence.size() == 2) {
    return (sequence[0] == '\xc2' && static_cast<uint8_t>(sequence[1]) < 0xA0) ||
           sequence == "\u061c";
  }
  if (sequence.size() != 3 || sequence[0] != '\xe2') return false;
  const auto second = static_cast<uint8_t>(sequence[1]), third = static_cast<uint8_t>(sequence[2]);
  if (second == 0x81) return third >= 0xA6 && third <= 0xA9;  // U+2066 to U+2069
  return second == 0x80 && (third == 0x8E || third == 0x8F || (third >= 0xA8 && third <= 0xAE));
}

std::string Shown(std::string_view text, bool lines) {
  std::string shown;
  for (size_t i = 0; i < text.size();) {
    const size_t length = SequenceAt(text, i);
    const bool kept = (!IsControl(text[i]) || (lines && (text[i] == '\n' || text[i] == '\t'))) &&
                      !IsHiddenCommand(text.substr(i, length));
    if (length > 0 && kept) {
      shown.append(text.substr(i, length));
      i += length;
    } else {
      absl::StrAppendFormat(&shown, "\\x%02x", static_cast<uint8_t>(text[i++]));
    }
  }
  return shown;
}

}  // namespace

size_t UnfinishedBytes(std::string_view text) {
  for (size_t bytes = 1; bytes <= 3 && bytes <= text.size(); ++bytes) {
    const std::string_view tail = text.substr(text.size() - bytes);
    const auto lead = static_cast<uint8_t>(tail[0]);
    if ((lead & 0xC0) == 0x80) continue;  // the lead stands in front
    const bool fits = bytes == 1 || SecondByteFits(lead, static_cast<uint8_t>(tail[1]));
    return fits && SequenceLength(lead) > static_cast<int>(bytes) ? bytes : 0;
  }
  return 0;
}

bool IsUtf8Text(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const size_t length = SequenceAt(text, i);
    if (length == 0 || text[i] == '\0') return false;
    i += length;
  }
  return true;
}

std::string ShownName(std::string_view name) { return Shown(name, false); }
std::string ShownText(std::string_view text) { return Shown(text, true); }

}  // namespace stagecoach
