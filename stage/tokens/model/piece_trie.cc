#include "stage/tokens/model/piece_trie.h"

#include <algorithm>

namespace stagecoach {

PieceTrie::PieceTrie(std::vector<Entry> entries) {
  std::sort(entries.begin(), entries.end());
  // The entries below each node; the piece that ends at the node comes first among them.
  struct Below {
    size_t begin, end, depth;
  };
  std::vector<Below> below = {{0, entries.size(), 0}};
  nodes_.emplace_back();
  for (size_t at = 0; at < nodes_.size(); ++at) {
    auto [begin, end, depth] = below[at];
    if (begin < end && entries[begin].first.size() == depth) {
      nodes_[at].id = entries[begin++].second;
    }
    nodes_[at].first_child = static_cast<uint32_t>(nodes_.size());
    while (begin < end) {
      const char byte = entries[begin].first[depth];
      size_t next = begin;
      while (next < end && entries[next].first[depth] == byte) ++next;
      nodes_.push_back({.byte = static_cast<uint8_t>(byte)});
      below.push_back({begin, next, depth + 1});
      ++nodes_[at].children;
      begin = next;
    }
  }
}

bool PieceTrie::Walk::Step(char byte) {
  const Node& node = trie_.nodes_[node_];
  const auto first = trie_.nodes_.begin() + node.first_child;
  const auto last = first + node.children;
  const auto wanted = static_cast<uint8_t>(byte);
  const auto child = std::lower_bound(
      first, last, wanted, [](const Node& other, uint8_t value) { return other.byte < value; });
  if (child == last || child->byte != wanted) return false;
  node_ = static_cast<uint32_t>(child - trie_.nodes_.begin());
  return true;
}

int32_t PieceTrie::Walk::id() const { return trie_.nodes_[node_].id; }

int32_t PieceTrie::Find(std::string_view piece) const {
  Walk walk(*this);
  for (const char byte : piece) {
    if (!walk.Step(byte)) return -1;
  }
  return walk.id();
}

size_t PieceTrie::LongestPrefix(std::string_view text) const {
  Walk walk(*this);
  size_t longest = 0;
  for (size_t i = 0; i < text.size() && walk.Step(text[i]); ++i) {
    if (walk.id() >= 0) longest = i + 1;
  }
  return longest;
}

}  // namespace stagecoach
