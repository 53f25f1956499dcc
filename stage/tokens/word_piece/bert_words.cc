#include "stage/tokens/word_piece/bert_words.h"

#include <string>

#include "base/errors/status.h"
#include "stage/tokens/tokenizer_json/unicode_versions.h"
#include "stage/tokens/word_piece/bert_characters.h"

namespace stagecoach {

absl::Status CheckBertPreTokenizer(const JsonField& field) {
  if (field.missing()) return field.Refused("that of WordPiece must be BertPreTokenizer");
  ASSIGN_OR_RETURN(const std::string type, field.Type());
  if (type == "BertPreTokenizer") return absl::OkStatus();
  return field.Of("type").Refused("is not supported: that of WordPiece must be BertPreTokenizer");
}

std::vector<std::string_view> BertWords(std::string_view text) {
  std::vector<std::string_view> words;
  bool goes_on = false;  // the last word may get more characters
  ForEachCharacter(text, [&](char32_t character, std::string_view bytes) {
    const bool space = IsUnicodeSpace(character), mark = IsBertPunctuation(character);
    if (goes_on && !space && !mark) {
      words.back() = {words.back().data(), words.back().size() + bytes.size()};
    } else if (!space) {
      words.push_back(bytes);
    }
    goes_on = !space && !mark;
  });
  return words;
}

}  // namespace stagecoach
