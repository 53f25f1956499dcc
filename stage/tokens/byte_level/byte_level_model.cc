#include "stage/tokens/byte_level/byte_level_model.h"

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/errors/status.h"
#include "stage/tokens/byte_level/byte_characters.h"
#include "stage/tokens/byte_level/tokenizer_file.h"

namespace stagecoach {
namespace {

Vocabulary VocabularyOf(const TokenList& tokens) {
  Vocabulary vocabulary;
  vocabulary.reserve(tokens.in_vocabulary.size());
  for (const int32_t id : tokens.in_vocabulary) {
    vocabulary.emplace(tokens.pieces[static_cast<size_t>(id)].text, id);
  }
  return vocabulary;
}

TokenizerFacts FactsOf(const TokenizerFile& file) {
  return {.kind = "byte_level_bpe",
          .normalizer = file.normalizer.name(),
          .byte_fallback = file.rules.byte_fallback,
          .adds_space = file.pre_tokenizer.adds_space(),
          .line_ends = true,
          .of_json = true,
          .begins_texts = file.tokens.special.begins_texts,
          .unknown = file.unknown,
          .begin = file.tokens.special.begin,
          .end = file.tokens.special.end,
          .pad = file.tokens.special.pad,
          .mask = file.tokens.special.mask};
}

class ByteLevelModel final : public TokenizerModel {
 public:
  explicit ByteLevelModel(TokenizerFile file)
      : file_(std::move(file)),
        facts_(FactsOf(file_)),
        merges_(VocabularyOf(file_.tokens), file_.merges, file_.rules),
        added_(file_.tokens.added,
               [this](std::string_view part) { return file_.normalizer.Normalize(part); }) {}

  const TokenizerFacts& facts() const override { return facts_; }
  const std::vector<Piece>& pieces() const override { return file_.tokens.pieces; }
  absl::StatusOr<std::vector<int32_t>> Encode(std::string_view text) const override;
  absl::StatusOr<std::string> Decode(std::span<const int32_t> ids) const override;

 private:
  absl::Status EncodeWords(std::string_view text, BpeMerges::Work* work,
                           std::vector<int32_t>* ids) const;

  std::unique_ptr<BpeMerges::Work> TakeWork() const;
  void GiveBack(std::unique_ptr<BpeMerges::Work> work) const;

  const TokenizerFile file_;
  const TokenizerFacts facts_;
  const BpeMerges merges_;
  const AddedTokens added_;
  // As many as threads encoded at once, and no more: each keeps the words of texts before.
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<BpeMerges::Work>> works_;
};

std::unique_ptr<BpeMerges::Work> ByteLevelModel::TakeWork() const {
  const std::lock_guard lock(mutex_);
  if (works_.empty()) return std::make_unique<BpeMerges::Work>();
  std::unique_ptr<BpeMerges::Work> work = std::move(works_.back());
  works_.pop_back();
  return work;
}

void ByteLevelModel::GiveBack(std::unique_ptr<BpeMerges::Work> work) const {
  const std::lock_guard lock(mutex_);
  works_.push_back(std::move(work));
}

absl::StatusOr<std::vector<int32_t>> ByteLevelModel::Encode(std::string_view text) const {
  std::unique_ptr<BpeMerges::Work> work = TakeWork();
  auto ids = added_.Encode(
      text, [this](std::string_view part) { return file_.normalizer.Normalize(part); },
      [&](std::string_view part, std::vector<int32_t>* some) {
        return EncodeWords(part, work.get(), some);
      });
  GiveBack(std::move(work));
  return ids;
}

absl::Status ByteLevelModel::EncodeWords(std::string_view text, BpeMerges::Work* work,
                                         std::vector<int32_t>* ids) const {
  ASSIGN_OR_RETURN(const CutWords words, file_.pre_tokenizer.Run(std::string(text)));
  for (const ByteRange& word : words.parts) {
    RETURN_IF_ERROR(merges_.Tokenize(
        std::string_view(words.text).substr(word.begin, word.end - word.begin), work, ids));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ByteLevelModel::Decode(std::span<const int32_t> ids) const {
  std::string bytes;
  for (const int32_t id : ids) {
    if (id < 0 || id >= std::ssize(file_.tokens.pieces))
      return NoSuchId(id, file_.tokens.pieces.size());
    const std::string& piece = file_.tokens.pieces[static_cast<size_t>(id)].text;
    AppendBytesOfPiece(added_.DecodedText(id, piece), &bytes);
  }
  return TextOfBytes(bytes);
}

}  // namespace

absl::StatusOr<std::unique_ptr<const TokenizerModel>> MakeByteLevelModel(const JsonField& tokenizer,
                                                                         std::string_view config) {
  ASSIGN_OR_RETURN(TokenizerFile file, ReadTokenizerFile(tokenizer, config));
  return std::make_unique<const ByteLevelModel>(std::move(file));
}

}  // namespace stagecoach
