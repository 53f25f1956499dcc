// BatchSource: the samples of micro-batch (step, i), as inputs of the network. They are a pure
// function of the seed and the data set. So resuming at any step needs no reader state, and each
// stage that reads an input finds the same samples.
// Ownership: owns the data (mapped or read).  Threads: thread-compatible; executor thread.
// Units and shapes: arrays of a micro-batch in host memory, as RuntimeShape says: ids are I32, all
//            else F32.
// Order:  stage/data/sample_order.h; with buckets of lengths stage/data/parallel/bucket_order.h.
// Errors: if a sample cannot be read now, each request fails with field, path and reason. A source
//         that read everything when it was opened has no errors.
#ifndef STAGECOACH_STAGE_DATA_BATCH_SOURCE_H_
#define STAGECOACH_STAGE_DATA_BATCH_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/numbers/lengths.h"
#include "plan/control.h"
#include "plan/job/job_spec.h"

namespace stagecoach {

struct HostBatch {
  int64_t samples = 0;
  // Those that the arrays have; the same for all micro-batches of a mini-batch.
  Lengths lengths = {};
  PaddingCount padding = {};                   // of both sides, whichever inputs were asked for
  std::vector<std::vector<std::byte>> arrays;  // in the order of the names; empty without samples
};

class Tokenizer;

// Of a job with `write`: a sentence or a prompt.
struct LineToWrite {
  int64_t number = 0;  // of WriteSpec::lines
  std::string_view text;
};

// A held-out sentence and its translation, as the files have them.
struct HeldOutSentence {
  int64_t number = 0;  // among those held out, in their order; several files take turns
  std::string_view source, target;
};

class BatchSource {
 public:
  virtual ~BatchSource() = default;
  virtual const DatasetManifest& manifest() const = 0;
  // The inputs of these names; nothing else is decoded. CHECKs that the source has them all, as
  // OpenSource has verified.
  virtual absl::StatusOr<HostBatch> Train(uint64_t step, MicroBatchId micro_batch,
                                          std::span<const std::string> names) const = 0;
  // Micro-batch i of evaluation mini-batch `batch`; the last mini-batch may be short: samples may
  // be 0 for its last micro-batches.
  virtual absl::StatusOr<HostBatch> Evaluation(uint64_t batch, MicroBatchId micro_batch,
                                               std::span<const std::string> names) const = 0;
  virtual int64_t evaluation_batches() const = 0;  // min(spec.evaluation.batches, the data's)
  // Notes for the user about the opened data: records left out, suspicious things.
  virtual std::vector<std::string> notes() const { return {}; }
  // A summary for a survey: "80 pictures in 2 classes (a 41, b 39), 8 held out".
  virtual std::string Found() const { return ""; }
  // For sources that read records when they are needed: whether the first ones can be read.
  virtual absl::Status CheckFirst() const { return absl::OkStatus(); }
  // Facts of the data that the job does not give. A source that reads no images measures nothing.
  virtual DataFacts facts() const { return {}; }
  // For people, if the source reads images: the first held-out pictures as an evaluation sees them,
  // kShownPictures at most.
  virtual std::vector<std::string> Shown() const { return {}; }
  // Of a source of pairs of a job with evaluation.translate, where targets are read: the sentences of
  // an evaluation's micro-batch, in its order, and the tokenizer that its ids are made with.
  virtual std::vector<HeldOutSentence> Sentences(uint64_t, MicroBatchId) const { return {}; }
  // Of a job with `write`: the lines of a mini-batch's micro-batch, in its order.
  virtual std::vector<LineToWrite> Lines(uint64_t, MicroBatchId) const { return {}; }
  // Of such jobs; null: tokens are bytes.
  virtual const Tokenizer* tokenizer() const { return nullptr; }
  // The number of records left out because they cannot be read.
  virtual int64_t bad_records() const { return 0; }
};

// A damaged record stays damaged, so retries are no use. DATA_LOSS becomes INVALID_ARGUMENT, which
// ends the job with the reason. Other codes stay.
inline absl::Status DataError(const absl::Status& status) {
  return absl::IsDataLoss(status) ? absl::InvalidArgumentError(status.message()) : status;
}

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_DATA_BATCH_SOURCE_H_
