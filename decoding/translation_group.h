// TranslationGroup: sentences that are translated together, each by its own beam search. It says which
// rows the model computes next, and takes their candidates.
// Ownership: borrows the pool, whose rows it gives back as hypotheses end.
// Threads:   one at a time.
// Errors:    RESOURCE_EXHAUSTED: the pool has no row left. CHECKs that Rows and Take alternate.
#ifndef STAGECOACH_DECODING_TRANSLATION_GROUP_H_
#define STAGECOACH_DECODING_TRANSLATION_GROUP_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "decoding/beam_search.h"
#include "decoding/row_pool.h"
#include "decoding/token_search.h"

namespace stagecoach {

struct TranslationOptions {
  BeamOptions beam;
  int32_t begin = 0;    // the token that a translation begins with
  int64_t context = 0;  // positions of a translation
};

class TranslationGroup final : public TokenSearch {
 public:
  // numbers: of the sentences, for the caller.
  TranslationGroup(const TranslationOptions& options, std::vector<int64_t> numbers, RowPool* pool);
  ~TranslationGroup() override;
  TranslationGroup(const TranslationGroup&) = delete;
  TranslationGroup& operator=(const TranslationGroup&) = delete;

  // An upper bound for the rows of so many sentences.
  static int64_t MostRows(const TranslationOptions& options, int64_t sentences);

  bool over() const override { return sentences_.empty(); }
  absl::StatusOr<RowBatch> Rows() override;
  absl::Status Take(const CandidatesOfRows& candidates) override;
  // If an eighth of the samples or more have ended: the numbers of the others, for TokenModel::Keep.
  // Then the next Rows has only these. Otherwise nullopt.
  std::optional<std::vector<int64_t>> Shrink() override;

  struct Translation {
    int64_t number = 0;
    BeamSearch::Hypothesis best;
  };
  std::vector<Translation> TakeDone();  // since the last call

 private:
  struct Live {
    HypothesisId id;  // its last row is that of `token`
    int32_t token = 0;
  };
  struct Sentence {
    int64_t number = 0;
    BeamSearch search;
    std::vector<Live> live;  // none: it is done
  };

  absl::Status Advance(Sentence* sentence, std::span<const std::vector<Candidate>> candidates);

  const TranslationOptions options_;
  RowPool* const pool_;
  std::vector<Sentence> sentences_;
  std::vector<Translation> done_;
  int64_t steps_ = 0;
  int64_t asked_ = 0;  // rows whose candidates are due
};

}  // namespace stagecoach

#endif  // STAGECOACH_DECODING_TRANSLATION_GROUP_H_
