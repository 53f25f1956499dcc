#include "stage/tokens/tokenizer_json/token_list.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "base/utf8.h"
#include "stage/tokens/tokenizer_json/json_id.h"

namespace stagecoach {
namespace {

// The id that the library gives a token of the list, whatever the file says.
int32_t GivenId(const std::string& content, const Vocabulary& ids, int32_t greatest_added) {
  if (const auto found = ids.find(content); found != ids.end()) return found->second;
  return std::max(static_cast<int32_t>(ids.size()), greatest_added + 1);
}

absl::Status AddTokens(const JsonField& field, const Vocabulary& ids, TokenList* tokens) {
  ASSIGN_OR_RETURN(tokens->added, ReadAddedTokens(field));
  int32_t greatest = -1;
  for (size_t i = 0; i < tokens->added.size(); ++i) {
    const AddedToken& token = tokens->added[i];
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
    if (place >= tokens->pieces.size()) tokens->pieces.resize(place + 1);
    Piece& piece = tokens->pieces[place];
    if (!piece.text.empty() && piece.text != token.content) {
      return id_field.Refused(absl::StrCat("is the id of \"", ShownName(piece.text),
                                           "\" in model.vocab; give ", shown, " one of its own"));
    }
    piece.text = token.content;
    piece.type = token.special ? PieceType::kControl : PieceType::kUserDefined;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Vocabulary> ReadVocabulary(const JsonField& field, TokenList* tokens) {
  if (!field.is_object() || field.value()->empty()) {
    return field.Refused("must be an object of pieces and their ids, with one at least");
  }
  std::vector<Piece>& pieces = tokens->pieces;
  Vocabulary ids;
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
    if (place >= pieces.size()) pieces.resize(place + 1);
    Piece& piece = pieces[place];
    if (!piece.text.empty()) {
      return item().Refused(absl::StrCat("is the id of \"", ShownName(piece.text),
                                         "\" too; give each piece an id of its own"));
    }
    piece.text = text;
    ids.emplace(text, id);
    tokens->in_vocabulary.push_back(id);
  }
  return ids;
}

absl::Status ReadOtherTokens(const JsonField& tokenizer, std::string_view config,
                             Vocabulary* vocabulary, TokenList* tokens) {
  RETURN_IF_ERROR(AddTokens(tokenizer.Of("added_tokens"), *vocabulary, tokens));
  for (const AddedToken& token : tokens->added) vocabulary->emplace(token.content, token.id);
  for (Piece& piece : tokens->pieces) {
    if (piece.text.empty()) piece.type = PieceType::kUnused;
  }
  const auto find = [&](std::string_view text, bool only_added) {
    const auto found = vocabulary->find(text);
    if (found == vocabulary->end()) return -1;
    const PieceType type = tokens->pieces[static_cast<size_t>(found->second)].type;
    return only_added && type == PieceType::kNormal ? -1 : found->second;
  };
  nlohmann::json settings;
  if (!config.empty()) {
    ASSIGN_OR_RETURN(settings, Annotate(ParseJsonDocument(config), "tokenizer_config.json"));
  }
  ASSIGN_OR_RETURN(tokens->special, FindSpecialIds(tokenizer, JsonField(&settings), find));
  return absl::OkStatus();
}

}  // namespace stagecoach
