#include "stage/tokens/tokenizer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "base/files/file_kind.h"
#include "base/files/hash.h"
#include "base/utf8.h"

namespace stagecoach {
namespace {

constexpr char kRemedy[] = "; give a model that `stagecoach tokenizer train` or spm_train wrote";
constexpr char kReplacement[] = "\ufffd";

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
    text->append(good ? character : kReplacement);
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

}  // namespace

Tokenizer::Tokenizer(ModelFile model, std::string digest)
    : model_(std::move(model)),
      digest_(std::move(digest)),
      pieces_(Entries(model_, false)),
      symbols_(Entries(model_, true)),
      segmenter_(model_.kind == TokenizerKind::kUnigram
                     ? MakeUnigramSegmenter(model_, pieces_)
                     : MakeBpeSegmenter(model_, pieces_, symbols_)) {}

absl::StatusOr<std::unique_ptr<const Tokenizer>> Tokenizer::Parse(std::string_view bytes) {
  absl::StatusOr<ModelFile> model = ParseModelFile(bytes);
  if (!model.ok()) return NoModel(bytes, model.status());
  Sha256 digest;
  digest.Update(std::as_bytes(std::span(bytes)));
  NormalizerRules rules = model->rules;
  model->rules.characters.clear();
  std::unique_ptr<Tokenizer> tokenizer(new Tokenizer(*std::move(model), digest.Hex()));
  absl::StatusOr<TextNormalizer> normalizer =
      TextNormalizer::Make(std::move(rules), &tokenizer->symbols_);
  if (!normalizer.ok()) return NoModel(bytes, normalizer.status());
  tokenizer->normalizer_ = std::make_unique<const TextNormalizer>(*std::move(normalizer));
  return tokenizer;
}

absl::Status CheckModelSize(int64_t bytes) {
  if (bytes <= kMostModelBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("not a SentencePiece model: it has ", bytes,
                                                 " bytes, of ", kMostModelBytes, " at most",
                                                 kRemedy));
}

absl::StatusOr<std::unique_ptr<const Tokenizer>> Tokenizer::Load(ReadableFiles& files,
                                                                 const std::string& path) {
  const std::string shown = ShownName(path);
  ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> file, files.Open(path));
  RETURN_IF_ERROR(Annotate(CheckModelSize(file->size()), shown));
  std::string bytes(static_cast<size_t>(file->size()), '\0');
  RETURN_IF_ERROR(file->Read(0, std::as_writable_bytes(std::span(bytes))));
  return Annotate(Parse(bytes), shown);
}

absl::StatusOr<std::vector<int32_t>> Tokenizer::Encode(std::string_view text) const {
  if (!IsUtf8Text(text)) {
    return absl::InvalidArgumentError(
        "the text is not UTF-8, or has a zero byte; convert it to UTF-8 first (iconv -t UTF-8)");
  }
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

absl::StatusOr<std::string> Tokenizer::Decode(std::span<const int32_t> ids) const {
  std::string text, bytes;
  bool at_start = true, mark_taken = false;
  for (const int32_t id : ids) {
    if (id < 0 || id >= this->ids()) {
      return absl::InvalidArgumentError(absl::StrCat("id ", id, " is not among the ", this->ids(),
                                                     " ids of the tokenizer, from 0 on"));
    }
    const Piece& piece = this->piece(id);
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

}  // namespace stagecoach
