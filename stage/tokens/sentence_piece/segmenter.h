// PieceSegmenter: cuts a normalized text into pieces, as SentencePiece does: the same ids, ties too.
//   unigram: the cut with the greatest sum of scores (Viterbi), in float as SentencePiece sums.
//   bpe:     from single characters on, joins the neighbours that make the piece of the greatest
//            score, the leftmost of several, until none make one.
// Ownership: borrows the model, which outlives it.  Threads: immutable.
#ifndef STAGECOACH_STAGE_TOKENS_SENTENCE_PIECE_SEGMENTER_H_
#define STAGECOACH_STAGE_TOKENS_SENTENCE_PIECE_SEGMENTER_H_

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "stage/tokens/model/piece_trie.h"
#include "stage/tokens/sentence_piece/model_file.h"

namespace stagecoach {

struct Segment {
  std::string_view text;
  int32_t id = 0;  // the unknown piece's for a text that is no piece
};

class PieceSegmenter {
 public:
  virtual ~PieceSegmenter() = default;
  // The segments are the text, in order; views into it.
  virtual std::vector<Segment> Cut(std::string_view normalized) const = 0;
};

// pieces: the model's normal, user-defined and unused ones. symbols: the user-defined ones alone.
std::unique_ptr<PieceSegmenter> MakeUnigramSegmenter(const ModelFile& model,
                                                     const PieceTrie& pieces);
std::unique_ptr<PieceSegmenter> MakeBpeSegmenter(const ModelFile& model, const PieceTrie& pieces,
                                                 const PieceTrie& symbols);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_TOKENS_SENTENCE_PIECE_SEGMENTER_H_
