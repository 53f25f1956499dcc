#include "services/cli/spec/utf8.h"

#include <cstddef>
#include <cstdint>

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

}  // namespace

bool IsUtf8Text(const std::string& text) {
  for (size_t i = 0; i < text.size();) {
    const auto lead = static_cast<uint8_t>(text[i]);
    const int length = SequenceLength(lead);
    if (length == 0 || lead == 0 || i + length > text.size()) return false;
    if (length > 1 && !SecondByteFits(lead, static_cast<uint8_t>(text[i + 1]))) return false;
    for (int j = 2; j < length; ++j) {
      if ((static_cast<uint8_t>(text[i + j]) & 0xC0) != 0x80) return false;
    }
    i += length;
  }
  return true;
}

}  // namespace stagecoach
