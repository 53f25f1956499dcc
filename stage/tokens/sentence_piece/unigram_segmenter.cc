#include <algorithm>
#include <cfloat>

#include "stage/tokens/sentence_piece/normalizer.h"
#include "stage/tokens/sentence_piece/segmenter.h"

namespace stagecoach {
namespace {

// How much worse an unknown character is than the worst piece.
constexpr float kUnknownPenalty = 10.0f;

class UnigramSegmenter final : public PieceSegmenter {
 public:
  UnigramSegmenter(const ModelFile& model, const PieceTrie& pieces)
      : model_(model), pieces_(pieces) {
    float least = FLT_MAX;
    for (const Piece& piece : model.pieces) {
      if (piece.type != PieceType::kNormal) continue;
      least = std::min(least, piece.score);
      greatest_ = std::max(greatest_, piece.score);
    }
    unknown_score_ = least - kUnknownPenalty;
  }

  std::vector<Segment> Cut(std::string_view text) const override {
    std::vector<Best> best(text.size() + 1);  // of the paths that end before each byte
    for (size_t start = 0; start < text.size();) {
      const size_t character = std::min(CharacterBytes(text[start]), text.size() - start);
      const float before = best[start].score;
      bool is_piece = false;
      PieceTrie::Walk walk(pieces_);
      for (size_t end = start; end < text.size() && walk.Step(text[end]);) {
        ++end;
        if (walk.id() < 0) continue;
        const Piece& piece = model_.pieces[static_cast<size_t>(walk.id())];
        if (piece.type == PieceType::kUnused) continue;
        const size_t length = end - start;
        // A symbol of the user wins against any cut.
        const double score = piece.type == PieceType::kUserDefined
                                 ? static_cast<float>(length) * greatest_ - 0.1
                                 : piece.score;
        best[end].Offer(score + before, start, walk.id());
        is_piece = is_piece || length == character;
      }
      if (!is_piece) {
        best[start + character].Offer(unknown_score_ + before, start, model_.unknown);
      }
      start += character;
    }
    std::vector<Segment> segments;
    for (size_t end = text.size(); end > 0;) {
      const Best& last = best[end];
      segments.push_back({text.substr(last.start, end - last.start), last.id});
      end = last.start;
    }
    std::reverse(segments.begin(), segments.end());
    return segments;
  }

 private:
  struct Best {
    float score = 0;
    int32_t id = -1;  // -1: no path ends here
    size_t start = 0;
    void Offer(double other, size_t other_start, int32_t other_id) {
      if (id >= 0 && other <= score) return;
      *this = {static_cast<float>(other), other_id, other_start};
    }
  };

  const ModelFile& model_;
  const PieceTrie& pieces_;
  float greatest_ = FLT_MIN, unknown_score_ = 0;
};

}  // namespace

std::unique_ptr<PieceSegmenter> MakeUnigramSegmenter(const ModelFile& model,
                                                     const PieceTrie& pieces) {
  return std::make_unique<UnigramSegmenter>(model, pieces);
}

}  // namespace stagecoach
