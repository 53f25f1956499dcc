#include "stage/tokens/word_piece/word_piece_decoder.h"

#include <utility>

#include "absl/strings/str_replace.h"
#include "base/errors/status.h"

namespace stagecoach {
namespace {

// One after the other, as the library does.
std::string CleanedUp(std::string text) {
  constexpr std::pair<const char*, const char*> kChanges[] = {
      {" .", "."},   {" ?", "?"},     {" !", "!"},     {" ,", ","},
      {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},   {" do not", " don't"},
      {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"},
  };
  for (const auto& [from, to] : kChanges) absl::StrReplaceAll({{from, to}}, &text);
  return text;
}

}  // namespace

absl::StatusOr<WordPieceDecoder> WordPieceDecoder::Make(const JsonField& field) {
  if (field.missing()) return field.Refused("that of WordPiece must be WordPiece");
  ASSIGN_OR_RETURN(const std::string type, field.Type());
  if (type != "WordPiece") {
    return field.Of("type").Refused("is not supported: that of WordPiece must be WordPiece");
  }
  WordPieceDecoder made;
  ASSIGN_OR_RETURN(made.prefix_, field.Of("prefix").Text());
  ASSIGN_OR_RETURN(made.cleans_up_, field.Of("cleanup").Flag());
  return made;
}

void WordPieceDecoder::Append(std::string_view piece, bool first, std::string* text) const {
  const bool within_word = !first && piece.starts_with(prefix_);
  if (within_word) piece.remove_prefix(prefix_.size());
  std::string own = first || within_word ? std::string(piece) : " " + std::string(piece);
  text->append(cleans_up_ ? CleanedUp(std::move(own)) : own);
}

}  // namespace stagecoach
