// BatchSource: which samples make micro-batch (step, i), and what the network's inputs are of them. A pure function
// of the seed and the data set, so resuming at any step needs no reader state, and each stage that reads an input
// finds the same samples.
// Ownership: owns the data (mapped or read).  Threads: thread-compatible; executor thread.
// Units and shapes: arrays of a micro-batch in host memory, as RuntimeShape says: ids are I32, all else F32.
// Errors: Open: NOT_FOUND, INVALID_ARGUMENT (plainly not text, empty, shorter than one context, token
//         >= vocabulary with its offset) naming field and remedy; the held-out split must hold at
//         least one sequence if the job evaluates.
// Text:   inputs "tokens" and "targets" [context]; targets are tokens shifted by one. The split is
//         plan/text_split.h. Sequence j of a split reads tokens [j * context, (j + 1) * context] (one more, for the
//         targets). With S sequences, the n-th one consumed by the job (n = step * N + position) is
//         PermuteIndex(seed, n / S, S, n % S). Evaluation uses the held-out sequences 0, 1, 2, ... in order, the
//         same ones every time.
#ifndef STAGECOACH_STAGE_DATA_BATCH_SOURCE_H_
#define STAGECOACH_STAGE_DATA_BATCH_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "plan/control.h"
#include "plan/job_spec.h"

namespace stagecoach {

struct HostBatch {
  int64_t samples = 0;
  std::vector<std::vector<std::byte>> arrays;  // in the order of the names; empty without samples
};

class BatchSource {
 public:
  virtual ~BatchSource() = default;
  virtual const DatasetManifest& manifest() const = 0;
  // The inputs of these names; one that the source does not give is a CHECK: OpenSource has asked.
  virtual HostBatch Train(uint64_t step, MicroBatchId micro_batch,
                          std::span<const std::string> names) const = 0;
  // Micro-batch i of evaluation mini-batch `batch`; the last mini-batch may be short: samples may be
  // 0 for its last micro-batches.
  virtual HostBatch Evaluation(uint64_t batch, MicroBatchId micro_batch,
                               std::span<const std::string> names) const = 0;
  virtual int64_t evaluation_batches() const = 0;  // min(spec.evaluation.batches, what is there)
};

// Gives "tokens" and "targets".
absl::StatusOr<std::unique_ptr<BatchSource>> OpenTextSource(const JobSpec& spec, int64_t context,
                                                            int64_t vocabulary);
// What the job's data section names; INVALID_ARGUMENT if the network has an input that it does not give.
absl::StatusOr<std::unique_ptr<BatchSource>> OpenSource(const JobSpec& spec,
                                                        const Network& network);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_DATA_BATCH_SOURCE_H_
