#include "stage/tokens/tokenizer.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "base/files/hash.h"
#include "base/json/json_field.h"
#include "base/utf8.h"
#include "stage/tokens/byte_level/byte_level_model.h"
#include "stage/tokens/sentence_piece/sentence_piece.h"
#include "stage/tokens/word_piece/word_piece_model.h"

namespace stagecoach {
namespace {

absl::StatusOr<std::string> ContentOf(ReadableFiles& files, const std::string& path) {
  ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> file, files.Open(path));
  RETURN_IF_ERROR(Annotate(CheckModelSize(file->size()), ShownName(path)));
  std::string bytes(static_cast<size_t>(file->size()), '\0');
  RETURN_IF_ERROR(file->Read(0, std::as_writable_bytes(std::span(bytes))));
  return bytes;
}

std::string DigestOf(std::string_view bytes) {
  Sha256 digest;
  digest.Update(std::as_bytes(std::span(bytes)));
  return digest.Hex();
}

absl::Status CheckVersion(const JsonField& field) {
  if (field.missing()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::string version, field.Text());
  return version == "1.0" ? absl::OkStatus() : field.Refused("is not known; must be \"1.0\"");
}

// "BPE" or "WordPiece". Old files do not say it.
absl::StatusOr<std::string> TypeOfModel(const JsonField& model) {
  const bool lacks_merges = model.Of("merges").value() == nullptr;
  const bool is_word_piece =
      lacks_merges && model.Of("max_input_chars_per_word").value() != nullptr;
  return model.Of("type").Text(is_word_piece ? "WordPiece" : "BPE");
}

absl::StatusOr<std::unique_ptr<const TokenizerModel>> ParseTokenizerJson(std::string_view bytes,
                                                                         std::string_view config) {
  ASSIGN_OR_RETURN(const nlohmann::json document, ParseJsonDocument(bytes));
  const JsonField tokenizer(&document);
  const JsonField model = tokenizer.Of("model");
  if (!model.is_object()) {
    return model.Refused("must be an object; give a tokenizer.json of Hugging Face");
  }
  RETURN_IF_ERROR(CheckVersion(tokenizer.Of("version")));
  ASSIGN_OR_RETURN(const std::string type, TypeOfModel(model));
  if (type == "BPE") return MakeByteLevelModel(tokenizer, config);
  if (type == "WordPiece") return MakeWordPieceModel(tokenizer, config);
  return model.Of("type").Refused(
      "is not supported: models are BPE, of bytes, and WordPiece; give such a tokenizer, or a "
      "SentencePiece model");
}

}  // namespace

absl::Status CheckModelSize(int64_t bytes) {
  if (bytes <= kMostModelBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("not a SentencePiece model or tokenizer.json: it has ", bytes, " bytes, of ",
                   kMostModelBytes, " at most; give another file"));
}

// A SentencePiece model never begins so: it would be a group, which its form does not have.
bool IsTokenizerJson(std::string_view bytes) { return bytes.starts_with('{'); }

std::string TokenizerConfigPath(const std::string& path) {
  return absl::StrCat(path.substr(0, path.rfind('/') + 1), "tokenizer_config.json");
}

Tokenizer::Tokenizer(std::unique_ptr<const TokenizerModel> model, std::string digest)
    : model_(std::move(model)), digest_(std::move(digest)) {}

absl::StatusOr<std::unique_ptr<const Tokenizer>> Tokenizer::Parse(std::string_view bytes,
                                                                  std::string_view config) {
  const bool json = IsTokenizerJson(bytes);
  ASSIGN_OR_RETURN(std::unique_ptr<const TokenizerModel> model,
                   json ? ParseTokenizerJson(bytes, config) : ParseSentencePiece(bytes));
  std::string digest = DigestOf(bytes);
  if (json && !config.empty()) {
    const TokenizerFacts& facts = model->facts();
    digest = DigestOf(
        absl::StrCat(digest, " begin ", facts.begin, " end ", facts.end, " pad ", facts.pad, "\n"));
  }
  return std::unique_ptr<const Tokenizer>(new Tokenizer(std::move(model), std::move(digest)));
}

absl::StatusOr<std::unique_ptr<const Tokenizer>> Tokenizer::Load(ReadableFiles& files,
                                                                 const std::string& path) {
  ASSIGN_OR_RETURN(const std::string bytes, ContentOf(files, path));
  std::string config;
  if (const std::string beside = TokenizerConfigPath(path);
      IsTokenizerJson(bytes) && !absl::IsNotFound(files.Look(beside))) {
    ASSIGN_OR_RETURN(config, ContentOf(files, beside));
  }
  return Annotate(Parse(bytes, config), ShownName(path));
}

}  // namespace stagecoach
