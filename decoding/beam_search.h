// BeamSearch: the likeliest texts that a model writes for one sentence, by fairseq's rules but for the
// last step and the length penalty.
// - A step takes the 2 * beam best continuations of all live hypotheses, by their sums of log
//   probabilities. Of equal sums, the earlier parent comes first, then the lower token.
// - Ends among the first `beam` of them finish their hypotheses. Other ends are dropped.
// - The first `beam` that are not ends are live next.
// - The search is over when `beam` hypotheses are finished, after most_tokens steps, or when none
//   is live. After most_tokens steps, live ones fill the free places of the finished, best first.
// - Finished hypotheses are ranked by score: sum / ((5 + length) / 6)^alpha. The length counts the
//   end.
// A beam of 1 is greedy search.
// Threads: one at a time.
// Errors:  CHECKs options, and that each live hypothesis has its candidates.
// See:     Wu et al., "Google's Neural Machine Translation System", 1609.08144, eq. 14, without
//          coverage.
#ifndef STAGECOACH_DECODING_BEAM_SEARCH_H_
#define STAGECOACH_DECODING_BEAM_SEARCH_H_

#include <cstdint>
#include <span>
#include <vector>

#include "decoding/choice.h"

namespace stagecoach {

struct BeamOptions {
  int beam = 5;
  double length_penalty = 0.6;  // alpha; 0: the score is the sum
  int64_t most_tokens = 1;      // of a hypothesis, without the end
  int64_t least_tokens = 0;     // of a hypothesis; before that many, the end is no continuation
  int32_t end = 0;              // the token that ends a text
  // Only the best one is wanted: the search is over as soon as no live hypothesis can outscore it.
  bool only_best = false;
};

class BeamSearch {
 public:
  struct Next {
    int parent = 0;  // the live hypothesis, before this step, that it continues
    int32_t token = 0;

    friend bool operator==(const Next&, const Next&) = default;
  };
  struct Hypothesis {
    std::vector<int32_t> tokens;  // without the end
    double sum = 0;               // of log probabilities, that of the end included
    double score = 0;             // of a finished one
    bool ended = false;           // by the end, not by most_tokens
  };

  // Begins with one live hypothesis without tokens.
  explicit BeamSearch(const BeamOptions& options);

  int live() const { return static_cast<int>(live_.size()); }
  bool over() const { return live_.empty(); }

  // candidates: of each live hypothesis the 2 * beam likeliest or more, or the whole vocabulary, in
  // any order. Returns the hypotheses that are live now, best first; none if the search is over.
  std::vector<Next> Advance(std::span<const std::vector<Candidate>> candidates);

  // The finished hypotheses, at most `beam`, best first; none if no continuation was left. Of equal scores, the earlier end leads.
  std::vector<Hypothesis> Best() const;

 private:
  void Finish(Hypothesis hypothesis);
  bool BestIsFound() const;
  bool full() const { return std::ssize(finished_) >= options_.beam; }

  BeamOptions options_;
  int64_t steps_ = 0;
  std::vector<Hypothesis> live_;      // best first
  std::vector<Hypothesis> finished_;  // in the order of their ends
};

}  // namespace stagecoach

#endif  // STAGECOACH_DECODING_BEAM_SEARCH_H_
