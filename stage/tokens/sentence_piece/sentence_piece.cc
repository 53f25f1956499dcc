#include "stage/tokens/sentence_piece/sentence_piece.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "base/files/file_kind.h"
#include "base/utf8.h"
#include "stage/tokens/model/piece_trie.h"
#include "stage/tokens/sentence_piece/model_file.h"
#include "stage/tokens/sentence_piece/normalizer.h"
#include "stage/tokens/sentence_piece/segmenter.h"

namespace stagecoach {
namespace {

constexpr char kRemedy[] = "; give a model that `stagecoach tokenizer train` or spm_train wrote";

absl::Status NoModel(std::string_view bytes, const absl::Status& reason) {
  const std::string other = OtherKindText(bytes.substr(0, kFileKindBytes), "a SentencePiece model");
  if (!other.empty()) return absl::InvalidArgumentError(other);
  const bool understood = absl::IsUnimplemented(reason);
  return absl::InvalidArgumentError(
      understood ? absl::StrCat("a SentencePiece model that is not supported: ", reason.message())
                 : absl::StrCat("not a SentencePiece model, or a damaged one: ", reason.message(),
                                kRemedy));
}

std::vector<PieceTrie::Entry> Entries(const ModelFile& model, bool symbols_only) {
  std::vector<PieceTrie::Entry> entries;
  for (size_t i = 0; i < model.pieces.size(); ++i) {
    const Piece& piece = model.pieces[i];
    const bool symbol = piece.type == PieceType::kUserDefined;
    const bool normal = piece.type == PieceType::kNormal || piece.type == PieceType::kUnused;
    if (symbol || (normal && !symbols_only)) {
      entries.emplace_back(piece.text, static_cast<int32_t>(i));
    }
  }
  return entries;
}

// Bytes as text: each that belongs to no character becomes U+FFFD.
void AppendBytes(std::string* bytes, std::string* text) {
  for (std::string_view left = *bytes; !left.empty();) {
    const size_t count = std::min(CharacterBytes(left.front()), left.size());
    const std::string_view character = left.substr(0, count);
    const bool good = character == std::string_view("\0", 1) || IsUtf8Text(character);
    text->append(good ? character : kReplacementCharacter);
    left.remove_prefix(good ? count : 1);
  }
  bytes->clear();
}

void AppendMarksAsSpaces(std::string_view piece, std::string* text) {
  for (size_t mark; (mark = piece.find(kSpaceMark)) != piece.npos;) {
    text->append(piece.substr(0, mark)).push_back(' ');
    piece.remove_prefix(mark + kSpaceMark.size());
  }
  text->append(piece);
}

class SentencePieceModel final : public TokenizerModel {
 public:
  explicit SentencePieceModel(ModelFile model)
      : model_(std::move(model)),
        facts_({.kind = model_.kind == TokenizerKind::kUnigram ? "unigram" : "bpe",
                .normalizer = model_.rules.name,
                .byte_fallback = model_.byte_fallback,
                .unknown = model_.unknown,
                .begin = model_.begin,
                .end = model_.end,
                .pad = model_.pad}),
        pieces_(Entries(model_, false)),
        symbols_(Entries(model_, true)),
        segmenter_(model_.kind == TokenizerKind::kUnigram
                       ? MakeUnigramSegmenter(model_, pieces_)
                       : MakeBpeSegmenter(model_, pieces_, symbols_)) {}

  absl::Status TakeRules(NormalizerRules rules) {
    ASSIGN_OR_RETURN(TextNormalizer normalizer, TextNormalizer::Make(std::move(rules), &symbols_));
    normalizer_ = std::make_unique<const TextNormalizer>(std::move(normalizer));
    return absl::OkStatus();
  }

  const TokenizerFacts& facts() const override { return facts_; }
  const std::vector<Piece>& pieces() const override { return model_.pieces; }
  absl::StatusOr<std::vector<int32_t>> Encode(std::string_view text) const override;
  absl::StatusOr<std::string> Decode(std::span<const int32_t> ids) const override;

 private:
  const ModelFile model_;
  const TokenizerFacts facts_;
  const PieceTrie pieces_, symbols_;
  std::unique_ptr<const TextNormalizer> normalizer_;
  std::unique_ptr<const PieceSegmenter> segmenter_;
};

absl::StatusOr<std::vector<int32_t>> SentencePieceModel::Encode(std::string_view text) const {
  if (!IsUtf8Text(text)) return NoUtf8Text();
  const absl::StatusOr<std::string> normalized = normalizer_->Normalize(text);
  if (!normalized.ok()) {  // callers name the text, which is not at fault
    return absl::InvalidArgumentError(
        absl::StrCat("the tokenizer: ", normalized.status().message(), kRemedy));
  }
  std::vector<int32_t> ids;
  bool unknown = false;
  for (const Segment& segment : segmenter_->Cut(*normalized)) {
    const bool before = std::exchange(unknown, segment.id == model_.unknown);
    if (unknown && model_.byte_fallback) {
      for (const char byte : segment.text) {
        ids.push_back(model_.byte_ids[static_cast<uint8_t>(byte)]);
      }
    } else if (!unknown || !before) {  // unknown characters in a row are one piece
      ids.push_back(segment.id);
    }
  }
  return ids;
}

absl::StatusOr<std::string> SentencePieceModel::Decode(std::span<const int32_t> ids) const {
  std::string text, bytes;
  bool at_start = true, mark_taken = false;
  for (const int32_t id : ids) {
    if (id < 0 || id >= std::ssize(model_.pieces)) return NoSuchId(id, model_.pieces.size());
    const Piece& piece = model_.pieces[static_cast<size_t>(id)];
    if (piece.type == PieceType::kByte) {
      bytes.push_back(static_cast<char>(ByteOfPiece(piece.text)));
      continue;
    }
    AppendBytes(&bytes, &text);
    if (mark_taken || !text.empty()) at_start = false;
    mark_taken = false;
    if (piece.type == PieceType::kControl) continue;
    if (piece.type == PieceType::kUnknown) {
      text += model_.unknown_text;
      continue;
    }
    std::string_view rest = piece.text;
    const NormalizerRules& rules = model_.rules;
    if (at_start && (rules.add_dummy_prefix || rules.remove_extra_spaces) &&
        rest.starts_with(kSpaceMark)) {
      rest.remove_prefix(kSpaceMark.size());
      mark_taken = !rules.remove_extra_spaces;  // if it removes spaces, the next one goes as well
    }
    AppendMarksAsSpaces(rest, &text);
  }
  AppendBytes(&bytes, &text);
  return text;
}

}  // namespace

absl::StatusOr<std::unique_ptr<const TokenizerModel>> ParseSentencePiece(std::string_view bytes) {
  absl::StatusOr<ModelFile> model = ParseModelFile(bytes);
  if (!model.ok()) return NoModel(bytes, model.status());
  NormalizerRules rules = model->rules;
  model->rules.characters.clear();
  auto parsed = std::make_unique<SentencePieceModel>(*std::move(model));
  const absl::Status status = parsed->TakeRules(std::move(rules));
  if (!status.ok()) return NoModel(bytes, status);
  return parsed;
}

}  // namespace stagecoach
