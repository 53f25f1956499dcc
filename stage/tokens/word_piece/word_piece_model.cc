#include "stage/tokens/word_piece/word_piece_model.h"

#include <string>
#include <utility>
#include <vector>

#include "base/errors/status.h"
#include "stage/tokens/tokenizer_json/added_tokens.h"
#include "stage/tokens/tokenizer_json/token_list.h"
#include "stage/tokens/word_piece/bert_normalizer.h"
#include "stage/tokens/word_piece/bert_words.h"
#include "stage/tokens/word_piece/word_piece_decoder.h"
#include "stage/tokens/word_piece/word_pieces.h"

namespace stagecoach {
namespace {

TokenizerFacts FactsOf(const SpecialIds& special, int32_t unknown) {
  return {.kind = "word_piece",
          .normalizer = "BertNormalizer",
          .of_json = true,
          .begins_texts = special.begins_texts,
          .unknown = unknown,
          .begin = special.begin,
          .end = special.end,
          .pad = special.pad,
          .mask = special.mask};
}

class WordPieceModel final : public TokenizerModel {
 public:
  WordPieceModel(TokenList tokens, WordPieces word_pieces, BertNormalizer normalizer,
                 WordPieceDecoder decoder)
      : tokens_(std::move(tokens)),
        word_pieces_(std::move(word_pieces)),
        normalizer_(std::move(normalizer)),
        decoder_(std::move(decoder)),
        facts_(FactsOf(tokens_.special, word_pieces_.unknown())),
        added_(tokens_.added,
               [this](std::string_view part) { return normalizer_.Normalize(part); }) {}

  const TokenizerFacts& facts() const override { return facts_; }
  const std::vector<Piece>& pieces() const override { return tokens_.pieces; }
  absl::StatusOr<std::vector<int32_t>> Encode(std::string_view text) const override;
  absl::StatusOr<std::string> Decode(std::span<const int32_t> ids) const override;

 private:
  const TokenList tokens_;
  const WordPieces word_pieces_;
  const BertNormalizer normalizer_;
  const WordPieceDecoder decoder_;
  const TokenizerFacts facts_;
  const AddedTokens added_;
};

absl::StatusOr<std::vector<int32_t>> WordPieceModel::Encode(std::string_view text) const {
  return added_.Encode(
      text, [this](std::string_view part) { return normalizer_.Normalize(part); },
      [this](std::string_view part, std::vector<int32_t>* ids) {
        for (const std::string_view word : BertWords(part)) word_pieces_.Tokenize(word, ids);
        return absl::OkStatus();
      });
}

absl::StatusOr<std::string> WordPieceModel::Decode(std::span<const int32_t> ids) const {
  std::string text;
  bool first = true;
  for (const int32_t id : ids) {
    if (id < 0 || id >= std::ssize(tokens_.pieces)) return NoSuchId(id, tokens_.pieces.size());
    const Piece& piece = tokens_.pieces[static_cast<size_t>(id)];
    if (piece.type == PieceType::kUnused) continue;
    decoder_.Append(added_.DecodedText(id, piece.text), first, &text);
    first = false;
  }
  return text;
}

}  // namespace

absl::StatusOr<std::unique_ptr<const TokenizerModel>> MakeWordPieceModel(const JsonField& tokenizer,
                                                                         std::string_view config) {
  ASSIGN_OR_RETURN(BertNormalizer normalizer, BertNormalizer::Make(tokenizer.Of("normalizer")));
  RETURN_IF_ERROR(CheckBertPreTokenizer(tokenizer.Of("pre_tokenizer")));
  ASSIGN_OR_RETURN(WordPieceDecoder decoder, WordPieceDecoder::Make(tokenizer.Of("decoder")));
  TokenList tokens;
  const JsonField model = tokenizer.Of("model");
  ASSIGN_OR_RETURN(Vocabulary vocabulary, ReadVocabulary(model.Of("vocab"), &tokens));
  ASSIGN_OR_RETURN(WordPieces word_pieces, WordPieces::Make(model, vocabulary));
  RETURN_IF_ERROR(ReadOtherTokens(tokenizer, config, &vocabulary, &tokens));
  return std::make_unique<const WordPieceModel>(std::move(tokens), std::move(word_pieces),
                                                std::move(normalizer), std::move(decoder));
}

}  // namespace stagecoach
