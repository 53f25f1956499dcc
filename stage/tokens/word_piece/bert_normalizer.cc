#include "stage/tokens/word_piece/bert_normalizer.h"

#include "base/errors/status.h"
#include "stage/tokens/tokenizer_json/unicode_versions.h"
#include "stage/tokens/word_piece/bert_characters.h"

namespace stagecoach {
namespace {

constexpr char32_t kReplacement = 0xfffd;

}  // namespace

absl::StatusOr<BertNormalizer> BertNormalizer::Make(const JsonField& field) {
  if (field.missing()) return field.Refused("that of WordPiece must be BertNormalizer");
  ASSIGN_OR_RETURN(const std::string type, field.Type());
  if (type != "BertNormalizer") {
    return field.Of("type").Refused("is not supported: that of WordPiece must be BertNormalizer");
  }
  BertNormalizer made;
  ASSIGN_OR_RETURN(made.cleans_, field.Of("clean_text").Flag());
  ASSIGN_OR_RETURN(made.parts_ideographs_, field.Of("handle_chinese_chars").Flag());
  ASSIGN_OR_RETURN(made.lowercases_, field.Of("lowercase").Flag());
  ASSIGN_OR_RETURN(made.strips_accents_, field.Of("strip_accents").Flag(made.lowercases_));
  return made;
}

std::string BertNormalizer::Normalize(std::string_view text) const {
  std::string cleaned = cleans_ || parts_ideographs_ ? Clean(text) : std::string(text);
  if (strips_accents_) cleaned = decomposes_.Normalize(cleaned);
  return strips_accents_ || lowercases_ ? Fold(cleaned) : cleaned;
}

std::string BertNormalizer::Clean(std::string_view text) const {
  std::string cleaned;
  cleaned.reserve(text.size());
  ForEachCharacter(text, [&](char32_t character, std::string_view bytes) {
    if (cleans_ && (character == kReplacement || IsBertControl(character))) return;
    if (cleans_ && IsUnicodeSpace(character)) return cleaned.push_back(' ');
    const bool apart = parts_ideographs_ && IsBertIdeograph(character);
    if (apart) cleaned.push_back(' ');
    cleaned.append(bytes);
    if (apart) cleaned.push_back(' ');
  });
  return cleaned;
}

std::string BertNormalizer::Fold(std::string_view text) const {
  std::string folded;
  folded.reserve(text.size());
  ForEachCharacter(text, [&](char32_t character, std::string_view bytes) {
    if (strips_accents_ && IsBertAccent(character)) return;
    if (lowercases_) {
      AppendLowercase(character, &folded);
    } else {
      folded.append(bytes);
    }
  });
  return folded;
}

}  // namespace stagecoach
