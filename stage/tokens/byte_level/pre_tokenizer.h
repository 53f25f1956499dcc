// PreTokenizer: cuts a normalized text into words, within which pieces are joined. Its steps, in the
// order of the file:
//   ByteLevel: a space in front of each part, if the file says so; GPT-2's pattern, if the file says
//              so; then bytes as characters (byte_characters.h).
//   Split:     at the matches of a pattern, or between them.
//   Digits:    runs of digits by themselves, or each digit.
// Ownership: owns everything.  Threads: immutable.
// Errors:    Make: INVALID_ARGUMENT naming field, value and remedy. Run: as PatternFinder.
#ifndef STAGECOACH_STAGE_TOKENS_BYTE_LEVEL_PRE_TOKENIZER_H_
#define STAGECOACH_STAGE_TOKENS_BYTE_LEVEL_PRE_TOKENIZER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/json/json_field.h"
#include "stage/tokens/byte_level/pattern.h"

namespace stagecoach {

struct CutWords {
  std::string text;
  std::vector<ByteRange> parts;  // of the text, in order, none empty
};

class PreTokenizerStep {
 public:
  virtual ~PreTokenizerStep() = default;
  virtual absl::Status Run(CutWords* cut) const = 0;
  virtual bool makes_bytes() const { return false; }  // ByteLevel
  virtual bool adds_space() const { return false; }   // in front of each part
};

class PreTokenizer {
 public:
  // The field "pre_tokenizer" of a tokenizer.json.
  static absl::StatusOr<PreTokenizer> Make(const JsonField& field);

  bool adds_space() const;

  absl::StatusOr<CutWords> Run(std::string text) const;

 private:
  std::vector<std::unique_ptr<const PreTokenizerStep>> steps_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_TOKENS_BYTE_LEVEL_PRE_TOKENIZER_H_
