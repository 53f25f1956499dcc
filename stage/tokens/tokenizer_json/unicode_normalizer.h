// UnicodeNormalizer: the forms NFC, NFD, NFKC, NFKD of a text, one after the other, as the library
// `tokenizers` makes them: with the characters of Unicode 9.0. It leaves later ones as they are.
// Ownership: borrows from ICU.  Threads: immutable.
// Errors:    Make: INVALID_ARGUMENT naming the field and the value: another normalizer.
#ifndef STAGECOACH_STAGE_TOKENS_TOKENIZER_JSON_UNICODE_NORMALIZER_H_
#define STAGECOACH_STAGE_TOKENS_TOKENIZER_JSON_UNICODE_NORMALIZER_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/json/json_field.h"

namespace stagecoach {

enum class UnicodeForm : uint8_t { kNfc, kNfd, kNfkc, kNfkd };

class UnicodeNormalizer {
 public:
  // The field "normalizer" of a tokenizer.json; missing: none.
  static absl::StatusOr<UnicodeNormalizer> Make(const JsonField& field);

  static UnicodeNormalizer Of(UnicodeForm form);

  // text: UTF-8.
  std::string Normalize(std::string_view text) const;
  std::string name() const;  // "NFC"; empty: none

 private:
  std::vector<UnicodeForm> forms_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_TOKENS_TOKENIZER_JSON_UNICODE_NORMALIZER_H_
