#include "stage/tokens/word_piece/word_pieces.h"

#include <algorithm>
#include <utility>

#include "base/errors/status.h"

namespace stagecoach {
namespace {

// BERT's limit is 100. A word takes its characters times the longest piece.
constexpr int64_t kMostCharacters = 1000;

size_t CharactersOf(std::string_view text) {
  return static_cast<size_t>(
      std::ranges::count_if(text, [](char byte) { return (byte & 0xc0) != 0x80; }));
}

}  // namespace

absl::StatusOr<WordPieces> WordPieces::Make(const JsonField& model, const Vocabulary& vocabulary) {
  ASSIGN_OR_RETURN(std::string prefix, model.Of("continuing_subword_prefix").Text());
  ASSIGN_OR_RETURN(const int64_t most,
                   model.Of("max_input_chars_per_word").Whole(0, kMostCharacters));
  ASSIGN_OR_RETURN(const std::string unknown, model.Of("unk_token").Text());
  const auto found = vocabulary.find(unknown);
  if (found == vocabulary.end()) {
    return model.Of("unk_token").Refused("is not in model.vocab; name a piece of it");
  }
  return WordPieces(PieceTrie({vocabulary.begin(), vocabulary.end()}), std::move(prefix),
                    static_cast<size_t>(most), found->second);
}

WordPieces::WordPieces(PieceTrie trie, std::string prefix, size_t most_characters, int32_t unknown)
    : trie_(std::move(trie)),
      prefix_(std::move(prefix)),
      most_characters_(most_characters),
      unknown_(unknown) {}

void WordPieces::Tokenize(std::string_view word, std::vector<int32_t>* ids) const {
  const size_t known = ids->size();
  bool unknown = CharactersOf(word) > most_characters_;
  for (std::string_view rest = word; !rest.empty() && !unknown;) {
    const Found found = Longest(rest, /*within_word=*/rest.size() < word.size());
    ids->push_back(found.id);
    rest.remove_prefix(found.bytes);
    unknown = found.id < 0;
  }
  if (!unknown) return;
  ids->resize(known);
  ids->push_back(unknown_);
}

// Whole characters, as pieces and words are UTF-8.
WordPieces::Found WordPieces::Longest(std::string_view rest, bool within_word) const {
  PieceTrie::Walk walk(trie_);
  if (within_word) {
    for (const char byte : prefix_) {
      if (!walk.Step(byte)) return {};
    }
  }
  Found longest;
  for (size_t i = 0; i < rest.size() && walk.Step(rest[i]); ++i) {
    if (walk.id() >= 0) longest = {.id = walk.id(), .bytes = i + 1};
  }
  return longest;
}

}  // namespace stagecoach
