// RowPool: the rows of a pool of keys and values that hypotheses use, one row for each token. A
// hypothesis shares the rows of its parent, so the rows form a tree.
// Ownership: a hypothesis holds its rows until Release. A row is free when no hypothesis holds it.
//          Parents and children may be released in any order.
// Threads: one at a time. Deterministic: Extend takes the lowest free row.
// Units and shapes: rows count from 0. Extend takes amortized log(rows) for a parent's first child.
//          Every other child copies the parent's list. Release takes log(rows) for each row that it
//          frees.
// Errors:  RESOURCE_EXHAUSTED if no row is free; then nothing changes. CHECKs that ids are held.
#ifndef STAGECOACH_DECODING_ROW_POOL_H_
#define STAGECOACH_DECODING_ROW_POOL_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "base/ids.h"

namespace stagecoach {

// Its value is the last row, which no other hypothesis ends with.
using HypothesisId = Id<struct HypothesisTag>;

class RowPool {
 public:
  explicit RowPool(int32_t rows);

  // A new hypothesis: the parent's rows, if there is one, and one new row.
  absl::StatusOr<HypothesisId> Extend(std::optional<HypothesisId> parent);
  void Release(HypothesisId id);

  // In the order of the tokens; valid until the next Extend or Release.
  std::span<const int32_t> rows(HypothesisId id) const;
  int32_t free() const { return static_cast<int32_t>(free_.size()); }

 private:
  // Of a hypothesis and its first children, each beginning with the rows of the one before.
  using List = std::vector<int32_t>;
  struct Row {
    int32_t before = -1;         // the row of the token before
    int32_t users = 0;           // the hypothesis that ends here, and the rows that follow
    int32_t length = 0;          // of the list, up to this row
    std::shared_ptr<List> list;  // none: no hypothesis ends here
  };

  const Row& Held(HypothesisId id) const;

  std::vector<Row> rows_;
  std::vector<int32_t> free_;  // a heap, lowest first
};

}  // namespace stagecoach

#endif  // STAGECOACH_DECODING_ROW_POOL_H_
