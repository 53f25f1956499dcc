// Tokenizer: a SentencePiece model of kind unigram or bpe: text to ids and back, the same ids as
// SentencePiece gives.
//
// Its library is not used here. It aborts on damaged files, and its own protobuf cannot live in one
// process with ours. Tests compare with it.
//
// Ownership: owns everything.  Threads: immutable; any thread.
// Errors:    Load, Parse: INVALID_ARGUMENT naming the reason and the remedy: the file is no model.
//            Load names the path. Encode: INVALID_ARGUMENT: the text is not UTF-8, or has a zero
//            byte; "the tokenizer: …" and the remedy: the model's rules for this text are damaged.
//            Decode: INVALID_ARGUMENT: an id that the model does not have.
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
#include "checkpoint/files/file_system.h"
#include "stage/tokens/model_file.h"
#include "stage/tokens/normalizer.h"
#include "stage/tokens/piece_trie.h"
#include "stage/tokens/segmenter.h"

namespace stagecoach {

// The largest model file that is read; those of 256,000 pieces have 4 MiB.
inline constexpr int64_t kMostModelBytes = int64_t{32} << 20;

// INVALID_ARGUMENT: a file of so many bytes is not read.
absl::Status CheckModelSize(int64_t bytes);

class Tokenizer {
 public:
  static absl::StatusOr<std::unique_ptr<const Tokenizer>> Load(ReadableFiles& files,
                                                               const std::string& path);
  static absl::StatusOr<std::unique_ptr<const Tokenizer>> Parse(std::string_view bytes);

  int32_t ids() const { return static_cast<int32_t>(model_.pieces.size()); }
  TokenizerKind kind() const { return model_.kind; }
  const char* kind_name() const { return kind() == TokenizerKind::kUnigram ? "unigram" : "bpe"; }
  bool byte_fallback() const { return model_.byte_fallback; }
  // Ids with a meaning; -1: the model has none. The unknown piece is always there.
  int32_t unknown() const { return model_.unknown; }
  int32_t begin() const { return model_.begin; }
  int32_t end() const { return model_.end; }
  int32_t pad() const { return model_.pad; }
  const Piece& piece(int32_t id) const { return model_.pieces.at(static_cast<size_t>(id)); }
  const std::string& normalizer_name() const { return model_.rules.name; }
  const std::string& digest() const { return digest_; }  // SHA-256 of the file, hexadecimal

  // Without begin and end.
  absl::StatusOr<std::vector<int32_t>> Encode(std::string_view text) const;
  absl::StatusOr<std::string> Decode(std::span<const int32_t> ids) const;

 private:
  Tokenizer(ModelFile model, std::string digest);
  const ModelFile model_;
  const std::string digest_;
  const PieceTrie pieces_, symbols_;
  std::unique_ptr<const TextNormalizer> normalizer_;
  std::unique_ptr<const PieceSegmenter> segmenter_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_TOKENS_TOKENIZER_H_
