#include "services/cli/trained/token_text.h"

#include <string_view>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"

namespace stagecoach {
namespace {

constexpr std::string_view kReplacementCharacter = "\ufffd";

}  // namespace

absl::StatusOr<std::vector<int32_t>> TokenText::Begin(const std::string& prompt) {
  if (prompt.empty()) return absl::InvalidArgumentError("--prompt: needs at least one character");
  std::vector<int32_t> tokens;
  if (tokenizer_ == nullptr) {
    for (const char c : prompt) {
      tokens.push_back(static_cast<unsigned char>(c));
      if (tokens.back() < vocabulary_) continue;
      return absl::InvalidArgumentError(absl::StrCat("--prompt: byte ", tokens.back(),
                                                     " is not among the ", vocabulary_,
                                                     " tokens of the model"));
    }
    return tokens;
  }
  for (std::string_view left = prompt; !left.empty();) {
    const size_t end = left.find('\n');
    ASSIGN_OR_RETURN(line_, Annotate(tokenizer_->Encode(left.substr(0, end)), "--prompt"));
    tokens.insert(tokens.end(), line_.begin(), line_.end());
    if (end == left.npos) break;
    tokens.push_back(tokenizer_->end());
    line_.clear();
    left.remove_prefix(end + 1);
  }
  if (tokens.empty()) {
    return absl::InvalidArgumentError("--prompt: the tokenizer makes no token of it");
  }
  New(false);
  return tokens;
}

std::string TokenText::Add(int32_t token) {
  if (tokenizer_ == nullptr) return std::string(1, static_cast<char>(token));
  if (token == tokenizer_->end()) {
    std::string rest = New(true) + "\n";
    line_.clear();
    told_.clear();
    return rest;
  }
  line_.push_back(token);
  return New(false);
}

std::string TokenText::Finish() { return tokenizer_ == nullptr ? "" : New(true); }

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
  return more;
}

}  // namespace stagecoach
