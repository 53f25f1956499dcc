#include "stage/tokens/tokenizer_json/added_tokens.h"

#include <unicode/utf8.h>

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "base/utf8.h"
#include "stage/tokens/model/piece.h"
#include "stage/tokens/model/tokenizer_model.h"
#include "stage/tokens/tokenizer_json/json_id.h"
#include "stage/tokens/tokenizer_json/unicode_versions.h"

namespace stagecoach {
namespace {

constexpr size_t kMostEncodedBytes = size_t{64} << 20;

// The last character before `at`, and where it begins.
std::pair<char32_t, size_t> CharacterBefore(std::string_view text, size_t at) {
  auto i = static_cast<int32_t>(at);
  UChar32 character = 0;
  U8_PREV_OR_FFFD(text.data(), 0, i, character);
  return {static_cast<char32_t>(character), static_cast<size_t>(i)};
}

// The character at `at`, and where it ends.
std::pair<char32_t, size_t> CharacterAt(std::string_view text, size_t at) {
  auto i = static_cast<int32_t>(at);
  UChar32 character = 0;
  U8_NEXT_OR_FFFD(text.data(), i, static_cast<int32_t>(text.size()), character);
  return {static_cast<char32_t>(character), static_cast<size_t>(i)};
}

bool StandsAlone(std::string_view text, size_t begin, size_t end) {
  return (begin == 0 || !IsUnicodeWord(CharacterBefore(text, begin).first)) &&
         (end == text.size() || !IsUnicodeWord(CharacterAt(text, end).first));
}

size_t WithoutSpacesBefore(std::string_view text, size_t at) {
  while (at > 0) {
    const auto [character, begin] = CharacterBefore(text, at);
    if (!IsUnicodeSpace(character)) break;
    at = begin;
  }
  return at;
}

size_t BehindSpaces(std::string_view text, size_t at) {
  while (at < text.size()) {
    const auto [character, end] = CharacterAt(text, at);
    if (!IsUnicodeSpace(character)) break;
    at = end;
  }
  return at;
}

absl::StatusOr<AddedToken> ReadAddedToken(const JsonField& field) {
  AddedToken token;
  ASSIGN_OR_RETURN(token.id, IdOf(field.Of("id")));
  ASSIGN_OR_RETURN(token.content, field.Of("content").Text());
  if (token.content.empty() || token.content.size() > kMostPieceBytes) {
    return field.Of("content").Refused(absl::StrCat("must have 1 to ", kMostPieceBytes, " bytes"));
  }
  ASSIGN_OR_RETURN(token.special, field.Of("special").Flag(false));
  ASSIGN_OR_RETURN(token.single_word, field.Of("single_word").Flag(false));
  ASSIGN_OR_RETURN(token.strips_left, field.Of("lstrip").Flag(false));
  ASSIGN_OR_RETURN(token.strips_right, field.Of("rstrip").Flag(false));
  ASSIGN_OR_RETURN(token.normalized, field.Of("normalized").Flag(!token.special));
  return token;
}

}  // namespace

absl::StatusOr<std::vector<AddedToken>> ReadAddedTokens(const JsonField& field) {
  std::vector<AddedToken> tokens;
  std::set<std::string> contents;
  std::set<int32_t> ids;
  ASSIGN_OR_RETURN(const std::vector<JsonField> items, field.Items());
  for (const JsonField& item : items) {
    ASSIGN_OR_RETURN(AddedToken token, ReadAddedToken(item));
    if (!contents.insert(token.content).second) {
      return item.Of("content").Refused("is there already; give each token once");
    }
    if (!ids.insert(token.id).second) {
      return item.Of("id").Refused("is there already; give each token an id of its own");
    }
    tokens.push_back(std::move(token));
  }
  return tokens;
}

AddedTokens::Set AddedTokens::MakeSet(const std::vector<AddedToken>& tokens, bool normalized,
                                      NormalizeText normalize) {
  std::vector<size_t> places;
  std::vector<std::string> contents;
  std::set<std::string> seen;
  std::array<bool, 256> first_bytes{};
  // Normalized, several may be the same text: then the first special one is found, else the first.
  for (const bool special : {true, false}) {
    for (size_t i = 0; i < tokens.size(); ++i) {
      if (tokens[i].special != special || tokens[i].normalized != normalized) continue;
      std::string content = normalized ? normalize(tokens[i].content) : tokens[i].content;
      if (content.empty() || !seen.insert(content).second) continue;
      first_bytes[static_cast<uint8_t>(content.front())] = true;
      places.push_back(i);
      contents.push_back(std::move(content));
    }
  }
  std::vector<PieceTrie::Entry> entries;
  for (size_t i = 0; i < contents.size(); ++i) {
    entries.emplace_back(contents[i], static_cast<int32_t>(i));
  }
  return Set{std::move(places), PieceTrie(std::move(entries)), first_bytes};
}

AddedTokens::AddedTokens(std::vector<AddedToken> tokens, NormalizeText normalize)
    : tokens_(std::move(tokens)),
      raw_(MakeSet(tokens_, false, normalize)),
      normalized_(MakeSet(tokens_, true, normalize)) {
  for (const AddedToken& token : tokens_) {
    if (token.normalized) normalized_texts_.emplace(token.id, normalize(token.content));
  }
}

std::string_view AddedTokens::DecodedText(int32_t id, std::string_view piece) const {
  const auto found = normalized_texts_.find(id);
  return found == normalized_texts_.end() ? piece : found->second;
}

absl::StatusOr<std::vector<int32_t>> AddedTokens::Encode(std::string_view text,
                                                         NormalizeText normalize,
                                                         EncodeWords encode) const {
  if (!IsUtf8Text(text)) return NoUtf8Text();
  if (text.size() > kMostEncodedBytes) {
    return absl::InvalidArgumentError(absl::StrCat("the text has ", text.size(), " bytes, of ",
                                                   kMostEncodedBytes, " at most; divide it"));
  }
  std::vector<int32_t> ids;
  for (const Part& raw : Cut(text, /*normalized=*/false)) {
    if (raw.id >= 0) {
      ids.push_back(raw.id);
      continue;
    }
    const std::string normalized = normalize(raw.text);
    for (const Part& part : Cut(normalized, /*normalized=*/true)) {
      if (part.id >= 0) {
        ids.push_back(part.id);
      } else {
        RETURN_IF_ERROR(Annotate(encode(part.text, &ids), "the tokenizer"));
      }
    }
  }
  return ids;
}

// As the library: the search goes on right behind a token's own text, also if that took spaces with
// it in which the next token begins.
std::vector<AddedTokens::Part> AddedTokens::Cut(std::string_view text, bool normalized) const {
  const Set& set = normalized ? normalized_ : raw_;
  std::vector<Part> parts;
  size_t cut = 0;  // the text before it is in `parts`
  for (size_t at = 0; at < text.size() && !set.tokens.empty();) {
    if (!set.first_bytes[static_cast<uint8_t>(text[at])]) {
      ++at;
      continue;
    }
    const size_t bytes = set.trie.LongestPrefix(text.substr(at));
    if (bytes == 0) {
      ++at;
      continue;
    }
    const int32_t found = set.trie.Find(text.substr(at, bytes));
    const AddedToken& token = tokens_[set.tokens[static_cast<size_t>(found)]];
    size_t begin = at, end = at + bytes;
    at = end;
    if (token.single_word && !StandsAlone(text, begin, end)) continue;
    if (token.strips_left) begin = std::max(cut, WithoutSpacesBefore(text, begin));
    if (token.strips_right) end = BehindSpaces(text, end);
    end = std::max(begin, end);  // it stood in the spaces that the one before took
    if (cut < begin) parts.push_back({text.substr(cut, begin - cut)});
    parts.push_back({text.substr(begin, end - begin), token.id});
    cut = end;
  }
  if (cut < text.size()) parts.push_back({text.substr(cut)});
  return parts;
}

}  // namespace stagecoach
