// TokenSearch: texts that are written together. It says which rows the model computes next, and takes
// their candidates. translation_group.h and text_group.h implement it.
// Threads: one at a time.
// Errors:  RESOURCE_EXHAUSTED: the pool has no row left. CHECKs that Rows and Take alternate.
#ifndef STAGECOACH_DECODING_TOKEN_SEARCH_H_
#define STAGECOACH_DECODING_TOKEN_SEARCH_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "decoding/token_model.h"

namespace stagecoach {

class TokenSearch {
 public:
  virtual ~TokenSearch() = default;
  virtual bool over() const = 0;
  virtual absl::StatusOr<RowBatch> Rows() = 0;
  virtual absl::Status Take(const CandidatesOfRows& candidates) = 0;  // of the last Rows
  // The samples that the next Rows has, as numbers among those of the last, for TokenModel::Keep.
  // Nullopt: they are the same. Texts without a source, of which a model holds nothing, may end with
  // nullopt too.
  virtual std::optional<std::vector<int64_t>> Shrink() = 0;
};

}  // namespace stagecoach

#endif  // STAGECOACH_DECODING_TOKEN_SEARCH_H_
