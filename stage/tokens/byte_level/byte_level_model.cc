#include "stage/tokens/byte_level/byte_level_model.h"

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "base/utf8.h"
#include "stage/tokens/byte_level/byte_characters.h"
#include "stage/tokens/byte_level/tokenizer_file.h"

namespace stagecoach {
namespace {

constexpr size_t kMostEncodedBytes = size_t{64} << 20;

Vocabulary VocabularyOf(const TokenizerFile& file) {
  Vocabulary vocabulary;
  vocabulary.reserve(file.in_vocabulary.size());
  for (const int32_t id : file.in_vocabulary) {
    vocabulary.emplace(file.pieces[static_cast<size_t>(id)].text, id);
  }
  return vocabulary;
}

TokenizerFacts FactsOf(const TokenizerFile& file) {
  return {.kind = "byte_level_bpe",
          .normalizer = file.normalizer.name(),
          .byte_fallback = file.rules.byte_fallback,
          .adds_space = file.pre_tokenizer.adds_space(),
          .line_ends = true,
          .begins_texts = file.special.begins_texts,
          .unknown = file.unknown,
          .begin = file.special.begin,
          .end = file.special.end,
          .pad = file.special.pad};
}

class ByteLevelModel final : public TokenizerModel {
 public:
  explicit ByteLevelModel(TokenizerFile file)
      : file_(std::move(file)),
        facts_(FactsOf(file_)),
        merges_(VocabularyOf(file_), file_.merges, file_.rules),
        added_(file_.added, file_.normalizer) {
    for (const AddedToken& token : file_.added) some_normalized_ |= token.normalized;
  }

  const TokenizerFacts& facts() const override { return facts_; }
  const std::vector<Piece>& pieces() const override { return file_.pieces; }
  absl::StatusOr<std::vector<int32_t>> Encode(std::string_view text) const override;
  absl::StatusOr<std::string> Decode(std::span<const int32_t> ids) const override;

 private:
  // Of a text between added tokens that are not normalized.
  absl::Status EncodeRest(std::string_view text, BpeMerges::Work* work,
                          std::vector<int32_t>* ids) const;
  absl::Status EncodeWords(std::string_view text, BpeMerges::Work* work,
                           std::vector<int32_t>* ids) const;

  std::unique_ptr<BpeMerges::Work> TakeWork() const;
  void GiveBack(std::unique_ptr<BpeMerges::Work> work) const;

  const TokenizerFile file_;
  const TokenizerFacts facts_;
  const BpeMerges merges_;
  const AddedTokens added_;
  bool some_normalized_ = false;
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
  if (!IsUtf8Text(text)) return NoUtf8Text();
  if (text.size() > kMostEncodedBytes) {
    return absl::InvalidArgumentError(absl::StrCat("the text has ", text.size(), " bytes, of ",
                                                   kMostEncodedBytes, " at most; divide it"));
  }
  std::unique_ptr<BpeMerges::Work> work = TakeWork();
  std::vector<int32_t> ids;
  absl::Status status;
  for (const AddedTokens::Part& part : added_.Cut(text, /*normalized=*/false)) {
    if (part.id >= 0) {
      ids.push_back(part.id);
    } else if (status = EncodeRest(part.text, work.get(), &ids); !status.ok()) {
      break;
    }
  }
  GiveBack(std::move(work));
  RETURN_IF_ERROR(Annotate(status, "the tokenizer"));
  return ids;
}

absl::Status ByteLevelModel::EncodeRest(std::string_view text, BpeMerges::Work* work,
                                        std::vector<int32_t>* ids) const {
  const std::string normalized = file_.normalizer.Normalize(text);
  if (!some_normalized_) return EncodeWords(normalized, work, ids);
  for (const AddedTokens::Part& part : added_.Cut(normalized, /*normalized=*/true)) {
    if (part.id >= 0) {
      ids->push_back(part.id);
    } else {
      RETURN_IF_ERROR(EncodeWords(part.text, work, ids));
    }
  }
  return absl::OkStatus();
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
    if (id < 0 || id >= std::ssize(file_.pieces)) return NoSuchId(id, file_.pieces.size());
    AppendBytesOfPiece(file_.pieces[static_cast<size_t>(id)].text, &bytes);
  }
  return TextOfBytes(bytes);
}

}  // namespace

absl::StatusOr<std::unique_ptr<const TokenizerModel>> ParseByteLevelModel(std::string_view bytes,
                                                                          std::string_view config) {
  ASSIGN_OR_RETURN(TokenizerFile file, ParseTokenizerFile(bytes, config));
  return std::make_unique<const ByteLevelModel>(std::move(file));
}

}  // namespace stagecoach
