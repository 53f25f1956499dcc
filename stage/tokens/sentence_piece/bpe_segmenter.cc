#include <algorithm>
#include <queue>
#include <unordered_map>
#include <utility>

#include "stage/tokens/sentence_piece/normalizer.h"
#include "stage/tokens/sentence_piece/segmenter.h"

namespace stagecoach {
namespace {

// One text's work.
class Joining {
 public:
  Joining(const ModelFile& model, const PieceTrie& pieces, const PieceTrie& symbols,
          std::string_view text)
      : model_(model), pieces_(pieces) {
    while (!text.empty()) {
      const size_t symbol = symbols.LongestPrefix(text);
      const size_t bytes =
          symbol > 0 ? symbol : std::min(CharacterBytes(text.front()), text.size());
      const auto at = static_cast<int64_t>(parts_.size());
      parts_.push_back({text.substr(0, bytes), at - 1, at + 1, symbol > 0});
      text.remove_prefix(bytes);
    }
    if (!parts_.empty()) parts_.back().next = -1;
  }

  std::vector<Segment> Run() {
    for (int64_t i = 1; i < std::ssize(parts_); ++i) Propose(i - 1, i);
    while (!pairs_.empty()) {
      const Pair pair = pairs_.top();
      pairs_.pop();
      Part& left = At(pair.left);
      Part& right = At(pair.right);
      // A part of it was joined with another one meanwhile.
      if (left.text.empty() || right.text.empty() ||
          left.text.size() + right.text.size() != pair.bytes) {
        continue;
      }
      left.text = Joined(left, right);
      left.next = right.next;
      if (right.next >= 0) At(right.next).before = pair.left;
      right.text = {};
      Propose(left.before, pair.left);
      Propose(pair.left, left.next);
    }
    std::vector<Segment> segments;
    for (int64_t i = parts_.empty() ? -1 : 0; i >= 0; i = At(i).next) Take(At(i).text, &segments);
    return segments;
  }

 private:
  struct Part {
    std::string_view text;  // empty: it was joined to the one before
    int64_t before = -1, next = -1;
    bool whole = false;  // a symbol of the user: never joined
  };
  struct Pair {
    float score = 0;
    int64_t left = 0, right = 0;
    size_t bytes = 0;
    bool operator<(const Pair& other) const {
      return score != other.score ? score < other.score : left > other.left;
    }
  };

  Part& At(int64_t i) { return parts_[static_cast<size_t>(i)]; }
  static std::string_view Joined(const Part& left, const Part& right) {
    return {left.text.data(), left.text.size() + right.text.size()};
  }

  void Propose(int64_t left, int64_t right) {
    if (left < 0 || right < 0 || At(left).whole || At(right).whole) return;
    const std::string_view text = Joined(At(left), At(right));
    const int32_t id = pieces_.Find(text);
    if (id < 0) return;
    const Piece& piece = model_.pieces[static_cast<size_t>(id)];
    pairs_.push({piece.score, left, right, text.size()});
    if (piece.type == PieceType::kUnused) halves_[text] = {At(left).text, At(right).text};
  }

  // An unused piece only helps to join others: its halves come out.
  void Take(std::string_view text, std::vector<Segment>* segments) {
    std::vector<std::string_view> left = {text};
    while (!left.empty()) {
      const std::string_view next = left.back();
      left.pop_back();
      const int32_t id = pieces_.Find(next);
      const auto halves = halves_.find(next);
      const bool unused =
          id >= 0 && model_.pieces[static_cast<size_t>(id)].type == PieceType::kUnused;
      if (unused && halves != halves_.end()) {
        left.push_back(halves->second.second);
        left.push_back(halves->second.first);
        continue;
      }
      segments->push_back({next, id < 0 ? model_.unknown : id});
    }
  }

  const ModelFile& model_;
  const PieceTrie& pieces_;
  std::vector<Part> parts_;
  std::priority_queue<Pair> pairs_;
  std::unordered_map<std::string_view, std::pair<std::string_view, std::string_view>> halves_;
};

class BpeSegmenter final : public PieceSegmenter {
 public:
  BpeSegmenter(const ModelFile& model, const PieceTrie& pieces, const PieceTrie& symbols)
      : model_(model), pieces_(pieces), symbols_(symbols) {}
  std::vector<Segment> Cut(std::string_view normalized) const override {
    return Joining(model_, pieces_, symbols_, normalized).Run();
  }

 private:
  const ModelFile& model_;
  const PieceTrie& pieces_;
  const PieceTrie& symbols_;
};

}  // namespace

std::unique_ptr<PieceSegmenter> MakeBpeSegmenter(const ModelFile& model, const PieceTrie& pieces,
                                                 const PieceTrie& symbols) {
  return std::make_unique<BpeSegmenter>(model, pieces, symbols);
}

}  // namespace stagecoach
