// Tokenizer: text to ids and back, of a file in one of two forms:
//   a SentencePiece model of kind unigram or bpe: the ids that SentencePiece gives;
//   a tokenizer.json of Hugging Face, byte-level BPE or BERT's WordPiece: the ids that its library
//   `tokenizers` gives without special tokens around the text (byte_level/byte_level_model.h,
//   word_piece/word_piece_model.h).
// Ownership: owns everything.  Threads: immutable; any thread.
// Errors:    Load, Parse: INVALID_ARGUMENT naming the reason and the remedy: the file is no model,
//            or has parts that are not supported. Load names the path. Encode: INVALID_ARGUMENT: the
//            text is not UTF-8, or has a zero byte; "the tokenizer: …" and the remedy: the model's
//            rules for this text are damaged. Decode: INVALID_ARGUMENT: an id that the model does
//            not have.
#ifndef STAGECOACH_STAGE_TOKENS_TOKENIZER_H_
#define STAGECOACH_STAGE_TOKENS_TOKENIZER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/files/line_reader.h"
#include "checkpoint/files/file_system.h"
#include "stage/tokens/model/piece.h"
#include "stage/tokens/model/tokenizer_model.h"

namespace stagecoach {

// The largest file that is read. Models of 256,000 pieces have 4 MiB, a tokenizer.json of 200,000
// pieces with its merges 28 MiB.
inline constexpr int64_t kMostModelBytes = int64_t{32} << 20;

// INVALID_ARGUMENT: a file of so many bytes is not read.
absl::Status CheckModelSize(int64_t bytes);

// Whether these are the first bytes of a tokenizer.json. A file tokenizer_config.json in its folder
// says which tokens begin and end a text.
bool IsTokenizerJson(std::string_view bytes);
// "a/tokenizer.json": "a/tokenizer_config.json".
std::string TokenizerConfigPath(const std::string& path);

class Tokenizer {
 public:
  static absl::StatusOr<std::unique_ptr<const Tokenizer>> Load(ReadableFiles& files,
                                                               const std::string& path);
  // config: the content of tokenizer_config.json; empty: there is none.
  static absl::StatusOr<std::unique_ptr<const Tokenizer>> Parse(std::string_view bytes,
                                                                std::string_view config = "");

  int32_t ids() const { return static_cast<int32_t>(model_->pieces().size()); }
  // Of a tokenizer.json, in either form.
  bool of_json() const { return model_->facts().of_json; }
  // Whether a network of that vocabulary reads its ids. Networks of a tokenizer.json often have rows for
  // more ids.
  bool Fits(int64_t vocabulary) const {
    return of_json() ? ids() <= vocabulary : ids() == vocabulary;
  }
  const std::string& kind_name() const { return model_->facts().kind; }
  bool byte_fallback() const { return model_->facts().byte_fallback; }
  // Ids with a meaning; -1: the model has none.
  int32_t unknown() const { return model_->facts().unknown; }
  int32_t begin() const { return model_->facts().begin; }
  int32_t end() const { return model_->facts().end; }
  int32_t pad() const { return model_->facts().pad; }
  int32_t mask() const { return model_->facts().mask; }  // of a token that a network has to find
  const Piece& piece(int32_t id) const { return model_->pieces().at(static_cast<size_t>(id)); }
  // A text to continue has the begin id in front.
  bool begins_texts() const { return model_->facts().begins_texts; }
  // Line ends are part of a text, which the end id ends. If false, the end id stands for a line's end.
  bool line_ends() const { return model_->facts().line_ends; }
  // Where a long text is cut, whose parts are encoded each by itself.
  CutSpace cut_space() const {
    return model_->facts().adds_space ? CutSpace::kLeftOut : CutSpace::kBeginsPart;
  }
  const std::string& normalizer_name() const { return model_->facts().normalizer; }
  // SHA-256 of the file, hexadecimal. With a config: of the file's and of begin, end and pad, as files
  // of tokens are found again by it. The mask is not part of it: files of tokens have none.
  const std::string& digest() const { return digest_; }

  // Without begin and end.
  absl::StatusOr<std::vector<int32_t>> Encode(std::string_view text) const {
    return model_->Encode(text);
  }
  absl::StatusOr<std::string> Decode(std::span<const int32_t> ids) const {
    return model_->Decode(ids);
  }

 private:
  Tokenizer(std::unique_ptr<const TokenizerModel> model, std::string digest);
  const std::unique_ptr<const TokenizerModel> model_;
  const std::string digest_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_TOKENS_TOKENIZER_H_
