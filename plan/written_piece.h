// WrittenPiece: what a job with `write` has written of a line, piece by piece. A stage tells it beside
// its reports, the coordinator keeps it in the job's history and passes it on.
// After a loss of stages a mini-batch begins anew, and its pieces come again, cut elsewhere: the same
// bytes, as the stages of a job compute alike. So a reader keeps of each line how many bytes it has,
// and takes of a piece what is behind them.
// Ownership: plain values.
#ifndef STAGECOACH_PLAN_WRITTEN_PIECE_H_
#define STAGECOACH_PLAN_WRITTEN_PIECE_H_

#include <cstdint>
#include <string>

namespace stagecoach {

struct WrittenPiece {
  int64_t line = 0;    // of WriteSpec::lines, from 0
  int64_t offset = 0;  // bytes of the line's text before this piece
  std::string text;    // need not be UTF-8 where tokens are bytes
  bool done = false;   // it is the line's last piece
  int64_t tokens = 0;  // of the text up to here
  double score = 0;    // of a translation: log probability, with the length penalty
  bool ended = false;  // by itself or by a stop, and not by the number of tokens
  friend bool operator==(const WrittenPiece&, const WrittenPiece&) = default;
};

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_WRITTEN_PIECE_H_
