// PieceTrie: pieces of text by their bytes, for the pieces that a text begins with.
// Ownership: owns everything.  Threads: immutable.
// Memory:    12 bytes a node, at most one node a byte of the pieces.
#ifndef STAGECOACH_STAGE_TOKENS_MODEL_PIECE_TRIE_H_
#define STAGECOACH_STAGE_TOKENS_MODEL_PIECE_TRIE_H_

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace stagecoach {

class PieceTrie {
 public:
  using Entry = std::pair<std::string_view, int32_t>;  // piece and its id, which is not negative
  // Pieces are not empty and differ; the views are not kept.
  explicit PieceTrie(std::vector<Entry> entries);

  // A walk from the root, byte by byte.
  class Walk {
   public:
    explicit Walk(const PieceTrie& trie) : trie_(trie) {}
    bool Step(char byte);  // false: no piece goes on like that, and the walk is over
    int32_t id() const;    // of the piece that ends here; -1: none does

   private:
    const PieceTrie& trie_;
    uint32_t node_ = 0;
  };

  int32_t Find(std::string_view piece) const;  // its id; -1: not there
  // Bytes of the longest piece that `text` begins with; 0: none.
  size_t LongestPrefix(std::string_view text) const;
  bool empty() const { return nodes_.size() == 1; }

 private:
  struct Node {
    uint32_t first_child = 0;  // children stand together, by their byte
    int32_t id = -1;
    uint16_t children = 0;
    uint8_t byte = 0;
  };
  std::vector<Node> nodes_;  // the first is the root
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_TOKENS_MODEL_PIECE_TRIE_H_
