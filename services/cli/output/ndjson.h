// Ndjson: a job's records as one JSON object a line, for programs.
//   {"event":"step","step":...,"loss":...,"learning_rate":...,"gradient_norm":...,
//    "tokens_per_second":...,"step_seconds":...,"bubble":...,"bubble_ideal":...}
//   {"event":"evaluation","step":...,"loss":...}
//   {"event":"checkpoint","step":...}
//   {"event":"finished","state":"SUCCEEDED","step":...,"loss":...,"weights_digest":"sha256:..."}
//   {"event":"recovery","step":...,"message":...}
//   {"event":"written","step":...,"texts":[{"line":...,"offset":...,"text":...,"done":true,
//    "tokens":...,"score":...,"ended":true}]}
// If a network has measures beside the loss, steps and evaluations have them after these keys:
// "accuracy":0.91. A skipped step has "skipped":true at its end. A failed checkpoint has "error",
// and a job that did not succeed "message". A recovery says that the job goes back to an earlier
// step. Steps and evaluations that come again have "replayed":true after "skipped", as in
// metrics.jsonl (docs/formats.md). Keys are only ever appended.
// A job that writes texts has "written": pieces of its lines (plan/written_piece.h), and the keys
// from "done" on in the last piece of a line. Its "step" rises with each mini-batch of lines.
// While stages load, what one is at: {"event":"loading","step":...,"message":...,"percent":41}. It is
// in no history, and "percent" is there only if the message has one.
// Threads:   pure functions; Replays is thread-compatible.
#ifndef STAGECOACH_SERVICES_CLI_OUTPUT_NDJSON_H_
#define STAGECOACH_SERVICES_CLI_OUTPUT_NDJSON_H_

#include <cstdint>
#include <string>

#include "stagecoach/v1/job.pb.h"

namespace stagecoach {

// Finds records of one watch that a recovery replays.
class Replays {
 public:
  // Takes the next record; true if its step, or its evaluation, was taken before.
  bool Take(const v1::WatchJobResponse& record);

 private:
  uint64_t furthest_step_ = 0, furthest_evaluation_ = 0;
};

// The record's JSON without a line end; empty if it is no event (a change of state). writes: of a
// job that writes texts.
std::string ToNdjson(const v1::WatchJobResponse& record, bool replayed, bool writes = false);

// Of what a load is at (RecordSink::OnLoading).
std::string LoadingNdjson(const v1::WatchJobResponse& loading);

// "SUCCEEDED" of JOB_STATE_SUCCEEDED.
std::string StateName(v1::JobState state);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_OUTPUT_NDJSON_H_
