// BatchSource: which tokens make micro-batch (step, i). A pure function of the seed and the data set,
// so resuming at any step needs no reader state.
// Ownership: owns the data (mapped or read).  Threads: thread-compatible; executor thread.
// Units and shapes: ids I32 [sequences * context], host memory; targets are inputs shifted by one.
// Errors: Open: NOT_FOUND, INVALID_ARGUMENT (plainly not text, empty, shorter than one context, token
//         >= vocabulary with its offset) naming field and remedy; the held-out split must hold at
//         least one sequence if the job evaluates.
// Rule: the split is plan/text_split.h. Sequence j of a split reads tokens
//       [j * context, (j + 1) * context] (one more, for the targets). With S sequences, the n-th one
//       consumed by the job (n = step * N + position) is PermuteIndex(seed, n / S, S, n % S).
//       Evaluation uses the held-out sequences 0, 1, 2, ... in order, the same ones every time.
#ifndef STAGECOACH_STAGE_DATA_BATCH_SOURCE_H_
#define STAGECOACH_STAGE_DATA_BATCH_SOURCE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "plan/control.h"
#include "plan/job_spec.h"

namespace stagecoach {

struct TokenBatch {
  int64_t sequences = 0;
  std::vector<int32_t> inputs, targets;  // [sequences * context]
};

class BatchSource {
 public:
  virtual ~BatchSource() = default;
  virtual const DatasetManifest& manifest() const = 0;
  virtual TokenBatch Train(uint64_t step, MicroBatchId micro_batch) const = 0;
  // Micro-batch i of evaluation mini-batch `batch`; the last mini-batch may be short: sequences may be
  // 0 for its last micro-batches.
  virtual TokenBatch Evaluation(uint64_t batch, MicroBatchId micro_batch) const = 0;
  virtual int64_t evaluation_batches() const = 0;  // min(spec.evaluation.batches, what is there)
};

absl::StatusOr<std::unique_ptr<BatchSource>> OpenTextSource(const JobSpec& spec, int64_t context,
                                                            int64_t vocabulary);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_DATA_BATCH_SOURCE_H_
