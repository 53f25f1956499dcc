// WordPieces: a word as pieces: the longest piece that it begins with, then the longest one that its
// rest begins with, and so on. Pieces within a word are written with a prefix, "##". A word is unknown
// if a rest begins with no piece, or if it has too many characters.
// Ownership: owns everything.  Threads: immutable.
// Errors:    Make: INVALID_ARGUMENT naming field, value and remedy.
// See:       Devlin et al., BERT; Wu et al., Google's Neural Machine Translation System.
#ifndef STAGECOACH_STAGE_TOKENS_WORD_PIECE_WORD_PIECES_H_
#define STAGECOACH_STAGE_TOKENS_WORD_PIECE_WORD_PIECES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/json/json_field.h"
#include "stage/tokens/model/piece_trie.h"
#include "stage/tokens/tokenizer_json/token_list.h"

namespace stagecoach {

class WordPieces {
 public:
  // The field "model" of a tokenizer.json, and its vocabulary without added tokens.
  static absl::StatusOr<WordPieces> Make(const JsonField& model, const Vocabulary& vocabulary);

  int32_t unknown() const { return unknown_; }

  // Appends the ids of a word, which is UTF-8 and not empty.
  void Tokenize(std::string_view word, std::vector<int32_t>* ids) const;

 private:
  struct Found {
    int32_t id = -1;  // -1: no piece
    size_t bytes = 0;
  };
  WordPieces(PieceTrie trie, std::string prefix, size_t most_characters, int32_t unknown);
  Found Longest(std::string_view rest, bool within_word) const;

  PieceTrie trie_;
  std::string prefix_;
  size_t most_characters_ = 0;
  int32_t unknown_ = -1;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_TOKENS_WORD_PIECE_WORD_PIECES_H_
