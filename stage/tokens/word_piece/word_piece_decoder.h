// WordPieceDecoder: pieces as text: a space in front of each but the first, unless it goes on within a
// word. With `cleanup` a piece has no space in front of "." and of other English marks.
// Threads: immutable.
// Errors:  Make: INVALID_ARGUMENT naming the field and the value: another decoder.
#ifndef STAGECOACH_STAGE_TOKENS_WORD_PIECE_WORD_PIECE_DECODER_H_
#define STAGECOACH_STAGE_TOKENS_WORD_PIECE_WORD_PIECE_DECODER_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/json/json_field.h"

namespace stagecoach {

class WordPieceDecoder {
 public:
  // The field "decoder" of a tokenizer.json.
  static absl::StatusOr<WordPieceDecoder> Make(const JsonField& field);

  // The text of a piece depends on no other one.
  void Append(std::string_view piece, bool first, std::string* text) const;

 private:
  std::string prefix_;
  bool cleans_up_ = false;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_TOKENS_WORD_PIECE_WORD_PIECE_DECODER_H_
