#include "stage/tokens/token_text.h"

#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "base/utf8.h"

namespace stagecoach {
namespace {

constexpr size_t kMostDecoded = 64;  // ids
constexpr ptrdiff_t kKept = 8;

}  // namespace

absl::StatusOr<std::vector<int32_t>> TokenText::Begin(const std::string& field,
                                                      std::string_view prompt) {
  if (prompt.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(field, ": needs at least one character"));
  }
  std::vector<int32_t> tokens;
  if (tokenizer_ == nullptr) {
    for (const char c : prompt) {
      tokens.push_back(static_cast<unsigned char>(c));
      if (tokens.back() < vocabulary_) continue;
      return absl::InvalidArgumentError(absl::StrCat(field, ": byte ", tokens.back(),
                                                     " is not among the ", vocabulary_,
                                                     " tokens of the model"));
    }
    return tokens;
  }
  if (tokenizer_->line_ends()) {
    ASSIGN_OR_RETURN(line_, Annotate(tokenizer_->Encode(prompt), field));
    if (tokenizer_->begins_texts()) tokens.push_back(tokenizer_->begin());
    tokens.insert(tokens.end(), line_.begin(), line_.end());
  }
  for (std::string_view left = tokenizer_->line_ends() ? "" : prompt; !left.empty();) {
    const size_t end = left.find('\n');
    ASSIGN_OR_RETURN(line_, Annotate(tokenizer_->Encode(left.substr(0, end)), field));
    tokens.insert(tokens.end(), line_.begin(), line_.end());
    if (end == left.npos) break;
    tokens.push_back(tokenizer_->end());
    line_.clear();
    left.remove_prefix(end + 1);
  }
  if (tokens.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(field, ": the tokenizer makes no token of it"));
  }
  New(false);
  return tokens;
}

std::string TokenText::Add(int32_t token) {
  if (tokenizer_ == nullptr) {
    told_ += static_cast<char>(token);
    const std::string waits = told_.substr(told_.size() - UnfinishedBytes(told_));
    std::string whole = told_.substr(0, told_.size() - waits.size());
    told_ = waits;
    return whole;
  }
  if (token == tokenizer_->end() && !tokenizer_->line_ends()) {
    std::string rest = New(true) + "\n";
    line_.clear();
    told_.clear();
    return rest;
  }
  if (token >= tokenizer_->ids()) return "";  // a row of the network without a piece
  line_.push_back(token);
  return New(false);
}

std::string TokenText::Finish() {
  return tokenizer_ == nullptr ? std::exchange(told_, "") : New(true);
}

// The text of the line behind what was told. Not whole: without replacement characters at its end,
// which may become another character with the next byte.
std::string TokenText::New(bool whole) {
  const absl::StatusOr<std::string> decoded = tokenizer_->Decode(line_);
  std::string_view text = decoded.ok() ? std::string_view(*decoded) : std::string_view();
  while (!whole && text.ends_with(kReplacementCharacter)) {
    text.remove_suffix(kReplacementCharacter.size());
  }
  if (text.size() <= told_.size()) return "";
  std::string more(text.substr(told_.size()));
  told_ = text;
  if (line_.size() > kMostDecoded && told_ == *decoded) Forget();
  return more;
}

// What is told is decoded again with each token, so a long line is cut. The last tokens stay: a space
// at the beginning is none of a text, and a character has up to four tokens.
void TokenText::Forget() {
  const std::vector<int32_t> last(line_.end() - kKept, line_.end());
  const absl::StatusOr<std::string> decoded = tokenizer_->Decode(last);
  // Nothing but spaces would be a beginning still.
  if (!decoded.ok() || decoded->empty()) return;
  if (std::string_view(*decoded).ends_with(kReplacementCharacter)) return;
  line_ = last;
  told_ = *decoded;
}

int32_t EndOfText(const Tokenizer* tokenizer) {
  return tokenizer != nullptr && tokenizer->line_ends() ? tokenizer->end() : -1;
}

absl::StatusOr<int32_t> StopToken(const Tokenizer* tokenizer, int64_t vocabulary,
                                  const std::string& field, const std::string& stop) {
  if (tokenizer == nullptr) {
    const int32_t byte = stop.size() == 1 ? static_cast<unsigned char>(stop.front()) : -1;
    if (byte >= 0 && byte < vocabulary) return byte;
    return absl::InvalidArgumentError(absl::StrCat(field, ": \"", stop, "\" is not one of the ",
                                                   vocabulary, " bytes that the model writes"));
  }
  if (stop == "\n" && !tokenizer->line_ends()) return tokenizer->end();
  if (tokenizer->line_ends()) {  // whose pieces are written otherwise than their text
    const absl::StatusOr<std::vector<int32_t>> ids = tokenizer->Encode(stop);
    if (ids.ok() && ids->size() == 1) return ids->front();
  }
  for (int32_t id = 0; id < tokenizer->ids(); ++id) {
    if (tokenizer->piece(id).text == stop) return id;
  }
  return absl::InvalidArgumentError(
      absl::StrCat(field, ": \"", stop,
                   "\" is no piece of the tokenizer; `stagecoach tokenizer show` lists them"));
}

}  // namespace stagecoach
