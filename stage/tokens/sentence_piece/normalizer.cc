#include "stage/tokens/sentence_piece/normalizer.h"

#include <cstring>
#include <utility>

#include "base/errors/status.h"

namespace stagecoach {
namespace {

// Unicode's longest has 33 bytes.
constexpr size_t kMostReplacement = 1024;

absl::Status Damaged() { return absl::DataLossError("its rules for characters are damaged"); }

uint32_t LittleEndian(std::string_view bytes) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value |= uint32_t{static_cast<uint8_t>(bytes[i])} << (8 * i);
  return value;
}

// The units of a Darts-clone array.
bool HasValue(uint32_t unit) { return (unit >> 8 & 1) != 0; }
uint32_t ValueOf(uint32_t unit) { return unit & 0x7fffffffu; }
uint32_t LabelOf(uint32_t unit) { return unit & (0x80000000u | 0xffu); }
uint32_t OffsetOf(uint32_t unit) { return (unit >> 10) << ((unit & (1u << 9)) >> 6); }

void AppendEscaped(std::string_view text, bool escape, std::string* into) {
  for (const char c : text) {
    if (c == ' ' && escape) {
      into->append(kSpaceMark);
    } else {
      into->push_back(c);
    }
  }
}

}  // namespace

size_t CharacterBytes(char first) {
  const auto byte = static_cast<uint8_t>(first);
  if (byte < 0xc0) return 1;
  if (byte < 0xe0) return 2;
  return byte < 0xf0 ? 3 : 4;
}

absl::StatusOr<TextNormalizer> TextNormalizer::Make(NormalizerRules rules,
                                                    const PieceTrie* symbols) {
  TextNormalizer normalizer;
  normalizer.symbols_ = symbols;
  if (const std::string_view bytes = rules.characters; !bytes.empty()) {
    if (bytes.size() <= 4) return Damaged();
    const uint32_t array_bytes = LittleEndian(bytes);
    if (array_bytes % 4 != 0 || array_bytes == 0 || array_bytes >= bytes.size() - 4) {
      return Damaged();
    }
    for (size_t i = 0; i < array_bytes; i += 4) {
      normalizer.array_.push_back(LittleEndian(bytes.substr(4 + i)));
    }
    normalizer.replacements_ = bytes.substr(4 + array_bytes);
    if (normalizer.replacements_.back() != '\0') return Damaged();
  }
  rules.characters.clear();
  normalizer.rules_ = std::move(rules);
  return normalizer;
}

absl::StatusOr<TextNormalizer::Step> TextNormalizer::Rule(std::string_view text) const {
  Step step;
  if (array_.empty()) return step;
  size_t node = OffsetOf(array_[0]);
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<uint8_t>(text[i]);
    node ^= byte;
    if (node >= array_.size()) return step;
    const uint32_t unit = array_[node];
    if (LabelOf(unit) != byte) return step;
    node ^= OffsetOf(unit);
    if (!HasValue(unit)) continue;
    if (node >= array_.size()) return Damaged();
    const uint32_t at = ValueOf(array_[node]);
    if (at >= replacements_.size()) return Damaged();
    step.text = replacements_.c_str() + at;
    step.bytes = i + 1;
    if (step.text.size() > kMostReplacement) return Damaged();
  }
  return step;
}

absl::StatusOr<TextNormalizer::Step> TextNormalizer::Next(std::string_view text) const {
  if (const size_t symbol = symbols_->LongestPrefix(text); symbol > 0) {
    return Step{text.substr(0, symbol), symbol};
  }
  ASSIGN_OR_RETURN(Step step, Rule(text));
  if (step.bytes > 0) return step;
  const size_t bytes = std::min(CharacterBytes(text.front()), text.size());
  return Step{text.substr(0, bytes), bytes};
}

absl::StatusOr<std::string> TextNormalizer::Normalize(std::string_view text) const {
  std::string normalized;
  const bool trims = rules_.remove_extra_spaces;
  while (trims && !text.empty()) {
    ASSIGN_OR_RETURN(const Step step, Next(text));
    if (step.text != " ") break;
    text.remove_prefix(step.bytes);
  }
  if (text.empty()) return normalized;
  normalized.reserve(text.size() + text.size() / 2);
  const std::string_view space = rules_.escape_spaces ? kSpaceMark : " ";
  if (rules_.add_dummy_prefix && !rules_.space_is_suffix) normalized.append(space);
  bool behind_space = trims;
  while (!text.empty()) {
    ASSIGN_OR_RETURN(Step step, Next(text));
    while (behind_space && step.text.starts_with(' ')) step.text.remove_prefix(1);
    if (!step.text.empty()) {
      AppendEscaped(step.text, rules_.escape_spaces, &normalized);
      behind_space = trims && step.text.ends_with(' ');
    }
    text.remove_prefix(step.bytes);
  }
  while (trims && normalized.ends_with(space)) {
    normalized.erase(normalized.size() - space.size());
  }
  if (rules_.add_dummy_prefix && rules_.space_is_suffix) normalized.append(space);
  return normalized;
}

}  // namespace stagecoach
