// BertNormalizer: the text that BERT cuts into words. Its steps, each if the file says so:
//   clean_text:           control characters are left out, white space becomes spaces
//   handle_chinese_chars: spaces around ideographs
//   strip_accents:        NFD without nonspacing marks; null: if lowercase is true
//   lowercase:            letter by letter, whatever stands beside it
// Threads: immutable.
// Errors:  Make: INVALID_ARGUMENT naming the field and the value: another normalizer.
#ifndef STAGECOACH_STAGE_TOKENS_WORD_PIECE_BERT_NORMALIZER_H_
#define STAGECOACH_STAGE_TOKENS_WORD_PIECE_BERT_NORMALIZER_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/json/json_field.h"
#include "stage/tokens/tokenizer_json/unicode_normalizer.h"

namespace stagecoach {

class BertNormalizer {
 public:
  // The field "normalizer" of a tokenizer.json.
  static absl::StatusOr<BertNormalizer> Make(const JsonField& field);

  // text: UTF-8.
  std::string Normalize(std::string_view text) const;

 private:
  std::string Clean(std::string_view text) const;
  std::string Fold(std::string_view text) const;

  bool cleans_ = false;
  bool parts_ideographs_ = false;
  bool strips_accents_ = false;
  bool lowercases_ = false;
  UnicodeNormalizer decomposes_ = UnicodeNormalizer::Of(UnicodeForm::kNfd);
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_TOKENS_WORD_PIECE_BERT_NORMALIZER_H_
