// BatchSource: the samples of micro-batch (step, i), and the network's inputs of them. It is a pure
// function of the seed and the data set. So resuming at any step needs no reader state, and each
// stage that reads an input finds the same samples.
// Ownership: owns the data (mapped or read).  Threads: thread-compatible; executor thread.
// Units and shapes: arrays of a micro-batch in host memory, as RuntimeShape says: ids are I32, all
//            else F32.
// Order:  stage/data/sample_order.h, of every source.
// Errors: of a sample that cannot be read now, with field, path and reason, as often as it is asked
//         for. Sources that have read everything when they were opened have none.
#ifndef STAGECOACH_STAGE_DATA_BATCH_SOURCE_H_
#define STAGECOACH_STAGE_DATA_BATCH_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "plan/control.h"
#include "plan/job/job_spec.h"

namespace stagecoach {

struct HostBatch {
  int64_t samples = 0;
  std::vector<std::vector<std::byte>> arrays;  // in the order of the names; empty without samples
};

class BatchSource {
 public:
  virtual ~BatchSource() = default;
  virtual const DatasetManifest& manifest() const = 0;
  // The inputs of these names, and nothing else is decoded; one that the source does not give is a
  // CHECK: OpenSource has asked.
  virtual absl::StatusOr<HostBatch> Train(uint64_t step, MicroBatchId micro_batch,
                                          std::span<const std::string> names) const = 0;
  // Micro-batch i of evaluation mini-batch `batch`; the last mini-batch may be short: samples may
  // be 0 for its last micro-batches.
  virtual absl::StatusOr<HostBatch> Evaluation(uint64_t batch, MicroBatchId micro_batch,
                                               std::span<const std::string> names) const = 0;
  virtual int64_t evaluation_batches() const = 0;  // min(spec.evaluation.batches, what is there)
  // What a user should know of the data now that it is open: what is left out, what looks wrong.
  virtual std::vector<std::string> notes() const { return {}; }
  // What there is, in a few words: "80 pictures in 2 classes (a 41, b 39), 8 held out"; for a look
  // alone.
  virtual std::string Found() const { return ""; }
  // Whether the first records can be read, of sources that read them when they are needed.
  virtual absl::Status CheckFirst() const { return absl::OkStatus(); }
  // What it has found that the job does not say. Who reads no images has measured nothing.
  virtual DataFacts facts() const { return {}; }
  // The first held-out pictures as an evaluation sees them, kShownPictures at most, for people to
  // look at; of a source that reads images.
  virtual std::vector<std::string> Shown() const { return {}; }
  // Records that were left out because they cannot be read.
  virtual int64_t bad_records() const { return 0; }
};

// A record that is damaged is damaged for every attempt: DATA_LOSS, which others say of messages
// and checkpoints, becomes INVALID_ARGUMENT, which ends the job with the reason. Other codes stay.
inline absl::Status DataError(const absl::Status& status) {
  return absl::IsDataLoss(status) ? absl::InvalidArgumentError(status.message()) : status;
}

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_DATA_BATCH_SOURCE_H_
