#include "stage/tokens/byte_level/tokenizer_file.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "base/json/json_field.h"
#include "base/utf8.h"
#include "stage/tokens/byte_level/json_id.h"

namespace stagecoach {
namespace {

constexpr size_t kMostMerges = size_t{1} << 22;
constexpr char kVersionLine[] = "#version";

// Ids of the vocabulary by text, while the file is read; views of the JSON document.
using Ids = Vocabulary;

absl::Status CheckModelFields(const JsonField& model) {
  if (const JsonField type = model.Of("type"); !type.missing()) {
    ASSIGN_OR_RETURN(const std::string name, type.Text());
    if (name != "BPE") {
      return type.Refused(
          "is not supported: only byte-level BPE is; give such a tokenizer, or a "
          "SentencePiece model");
    }
  }
  for (const char* const name : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    const JsonField field = model.Of(name);
    if (field.missing()) continue;
    ASSIGN_OR_RETURN(const std::string text, field.Text());
    if (!text.empty()) return field.Refused("is not supported; must be null or empty");
  }
  const JsonField dropout = model.Of("dropout");
  const bool none =
      dropout.missing() || (dropout.value()->is_number() && dropout.value()->get<double>() == 0);
  if (!none) return dropout.Refused("is not supported, as ids would be random; must be null or 0");
  return absl::OkStatus();
}

absl::StatusOr<Ids> ReadVocabulary(const JsonField& field, std::vector<Piece>* pieces) {
  if (!field.is_object() || field.value()->empty()) {
    return field.Refused("must be an object of pieces and their ids");
  }
  Ids ids;
  ids.reserve(field.value()->size());
  for (const auto& [text, value] : field.value()->items()) {
    // Made for errors: it takes longer than the rest.
    const auto item = [&field, &text = text, &value = value] {
      return JsonField(&value, absl::StrCat(field.path(), "[\"", text, "\"]"));
    };
    if (!IsId(value)) return IdOf(item()).status();
    const auto id = value.get<int32_t>();
    if (text.empty() || text.size() > kMostPieceBytes) {
      return absl::InvalidArgumentError(absl::StrCat(field.path(), ": a piece of ", text.size(),
                                                     " bytes with id ", id, "; must have 1 to ",
                                                     kMostPieceBytes));
    }
    const auto place = static_cast<size_t>(id);
    if (place >= pieces->size()) pieces->resize(place + 1);
    Piece& piece = (*pieces)[place];
    if (!piece.text.empty()) {
      return item().Refused(absl::StrCat("is the id of \"", ShownName(piece.text),
                                         "\" too; give each piece an id of its own"));
    }
    piece.text = text;
    ids.emplace(text, id);
  }
  return ids;
}

using PiecePair = std::pair<std::string_view, std::string_view>;

// "a b", or ["a", "b"]; views of the document. nullopt: it is neither.
std::optional<PiecePair> PairOfMerge(const nlohmann::json& value) {
  if (value.is_array() && value.size() == 2 && value[0].is_string() && value[1].is_string()) {
    return PiecePair(value[0].get_ref<const std::string&>(),
                     value[1].get_ref<const std::string&>());
  }
  if (!value.is_string()) return std::nullopt;
  const std::string_view text = value.get_ref<const std::string&>();
  const size_t space = text.find(' ');
  if (space == text.npos || text.find(' ', space + 1) != text.npos) return std::nullopt;
  return PiecePair(text.substr(0, space), text.substr(space + 1));
}

// The merge that PairOfMerge does not take.
absl::Status NoMerge(const JsonField& field) {
  if (field.is_array() && field.value()->size() == 2) {
    RETURN_IF_ERROR(field.At(0).Text().status());
    RETURN_IF_ERROR(field.At(1).Text().status());
  }
  return field.Refused("must be two pieces, \"a b\" or [\"a\", \"b\"]");
}

absl::StatusOr<std::vector<BpeMerges::Merge>> ReadMerges(const JsonField& field, const Ids& ids) {
  if (!field.is_array() || field.value()->size() > kMostMerges) {
    return field.Refused(absl::StrCat("must be an array of ", kMostMerges, " merges at most"));
  }
  std::vector<BpeMerges::Merge> merges;
  merges.reserve(field.value()->size());
  std::string joined;
  for (size_t i = 0; i < field.value()->size(); ++i) {
    const nlohmann::json& item = (*field.value())[i];
    if (item.is_string() && item.get_ref<const std::string&>().starts_with(kVersionLine)) continue;
    const std::optional<PiecePair> pair = PairOfMerge(item);
    if (!pair.has_value()) return NoMerge(field.At(i));
    joined.assign(pair->first).append(pair->second);
    BpeMerges::Merge merge;
    for (const auto& [text, id] :
         {std::pair(pair->first, &merge.left), std::pair(pair->second, &merge.right),
          std::pair(std::string_view(joined), &merge.joined)}) {
      const auto found = ids.find(text);
      if (found == ids.end()) {
        return absl::InvalidArgumentError(
            absl::StrCat(field.At(i).path(), ": \"", ShownName(pair->first), " ",
                         ShownName(pair->second), "\": \"", ShownName(text),
                         "\" is not in model.vocab; the file may be damaged: "
                         "fetch it again"));
      }
      *id = found->second;
    }
    merges.push_back(merge);
  }
  return merges;
}

// The id that the library gives a token of the list, whatever the file says.
int32_t GivenId(const std::string& content, const Ids& ids, int32_t greatest_added) {
  if (const auto found = ids.find(content); found != ids.end()) return found->second;
  return std::max(static_cast<int32_t>(ids.size()), greatest_added + 1);
}

absl::Status AddTokens(const JsonField& field, const Ids& ids, TokenizerFile* file) {
  ASSIGN_OR_RETURN(file->added, ReadAddedTokens(field));
  int32_t greatest = -1;
  for (size_t i = 0; i < file->added.size(); ++i) {
    const AddedToken& token = file->added[i];
    const JsonField id_field = field.At(i).Of("id");
    const std::string shown = absl::StrCat("\"", ShownName(token.content), "\"");
    if (const int32_t given = GivenId(token.content, ids, greatest); given != token.id) {
      return id_field.Refused(absl::StrCat(
          "the library `tokenizers` gives ", shown, " the id ", given, " (",
          ids.contains(token.content) ? "that of model.vocab"
                                      : "the next behind model.vocab and the tokens before it",
          "); give that id, or save the tokenizer with the library again"));
    }
    greatest = std::max(greatest, token.id);
    const auto place = static_cast<size_t>(token.id);
    if (place >= file->pieces.size()) file->pieces.resize(place + 1);
    Piece& piece = file->pieces[place];
    if (!piece.text.empty() && piece.text != token.content) {
      return id_field.Refused(absl::StrCat("is the id of \"", ShownName(piece.text),
                                           "\" in model.vocab; give ", shown, " one of its own"));
    }
    piece.text = token.content;
    piece.type = token.special ? PieceType::kControl : PieceType::kUserDefined;
  }
  return absl::OkStatus();
}

absl::Status ReadRules(const JsonField& model, BpeRules* rules) {
  ASSIGN_OR_RETURN(rules->ignore_merges, model.Of("ignore_merges").Flag(false));
  ASSIGN_OR_RETURN(rules->byte_fallback, model.Of("byte_fallback").Flag(false));
  ASSIGN_OR_RETURN(rules->fuse_unknown, model.Of("fuse_unk").Flag(false));
  if (!model.Of("unk_token").missing()) {
    ASSIGN_OR_RETURN(rules->unknown, model.Of("unk_token").Text());
  }
  return absl::OkStatus();
}

absl::Status CheckDecoder(const JsonField& field) {
  ASSIGN_OR_RETURN(const std::string type, field.Type());
  if (type == "ByteLevel") return absl::OkStatus();
  if (type == "Sequence") {
    ASSIGN_OR_RETURN(const std::vector<JsonField> items, field.Of("decoders").Items());
    if (items.size() == 1) return CheckDecoder(items.front());
    return field.Of("decoders").Refused("must be one decoder, ByteLevel");
  }
  return field.Of("type").Refused("is not supported: the decoder must be ByteLevel");
}

absl::Status CheckVersion(const JsonField& field) {
  if (field.missing()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::string version, field.Text());
  return version == "1.0" ? absl::OkStatus() : field.Refused("is not known; must be \"1.0\"");
}

}  // namespace

absl::StatusOr<TokenizerFile> ParseTokenizerFile(std::string_view bytes, std::string_view config) {
  ASSIGN_OR_RETURN(const nlohmann::json document, ParseJsonDocument(bytes));
  const JsonField tokenizer(&document);
  const JsonField model = tokenizer.Of("model");
  if (!model.is_object()) {
    return model.Refused("must be an object; give a tokenizer.json of Hugging Face");
  }
  RETURN_IF_ERROR(CheckVersion(tokenizer.Of("version")));
  RETURN_IF_ERROR(CheckModelFields(model));
  TokenizerFile file;
  RETURN_IF_ERROR(ReadRules(model, &file.rules));
  ASSIGN_OR_RETURN(file.normalizer, UnicodeNormalizer::Make(tokenizer.Of("normalizer")));
  ASSIGN_OR_RETURN(file.pre_tokenizer, PreTokenizer::Make(tokenizer.Of("pre_tokenizer")));
  RETURN_IF_ERROR(CheckDecoder(tokenizer.Of("decoder")));
  ASSIGN_OR_RETURN(Ids ids, ReadVocabulary(model.Of("vocab"), &file.pieces));
  ASSIGN_OR_RETURN(file.merges, ReadMerges(model.Of("merges"), ids));
  for (const auto& [text, id] : ids) file.in_vocabulary.push_back(id);
  RETURN_IF_ERROR(AddTokens(tokenizer.Of("added_tokens"), ids, &file));
  for (const AddedToken& token : file.added) ids.emplace(token.content, token.id);
  for (Piece& piece : file.pieces) {
    if (piece.text.empty()) piece.type = PieceType::kUnused;
  }
  const auto find = [&](std::string_view text, bool only_added) {
    const auto found = ids.find(text);
    if (found == ids.end()) return -1;
    const PieceType type = file.pieces[static_cast<size_t>(found->second)].type;
    return only_added && type == PieceType::kNormal ? -1 : found->second;
  };
  if (file.rules.unknown) file.unknown = find(*file.rules.unknown, /*only_added=*/false);
  nlohmann::json settings;
  if (!config.empty()) {
    ASSIGN_OR_RETURN(settings, Annotate(ParseJsonDocument(config), "tokenizer_config.json"));
  }
  ASSIGN_OR_RETURN(file.special, FindSpecialIds(tokenizer, JsonField(&settings), find));
  return file;
}

}  // namespace stagecoach
