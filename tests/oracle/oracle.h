// What the oracle records; compare.py knows the same names and computes the same values in PyTorch.
#ifndef STAGECOACH_TESTS_ORACLE_ORACLE_H_
#define STAGECOACH_TESTS_ORACLE_ORACLE_H_

#include "absl/status/status.h"
#include "stage/backends/backend.h"
#include "tests/oracle/recorder.h"

namespace stagecoach {

// Every case of every operation that the back end has kernels for:
// "case/<operation>/<case>/<array>", forward and backward. Its attributes stand in the metadata.
absl::Status RecordOperations(Backend& backend, Recorder* recorder);

// A batch norm over some steps: "averages/x...", the mini-batches that were applied, and the
// running moments after them.
absl::Status RecordAverages(Backend& backend, Recorder* recorder);

// Updates of each optimizer: "updates/start/..." and "updates/gradient/...", and the values after
// them.
absl::Status RecordUpdates(Backend& backend, Recorder* recorder);

// A small GPT: "model/..." initial weights, "batch/...", then logits, loss and gradients of the
// first step and the losses of all training steps.
absl::Status RecordTraining(Backend& backend, Recorder* recorder);

// The same training in bfloat16 from the same weights: "bfloat16/logits/...",
// "bfloat16/gradient/..." of the first step, and "bfloat16/training/..." of all.
absl::Status RecordBfloat16Training(Backend& backend, Recorder* recorder);

// Reads lines of JSON from standard input, {"text": TEXT} or {"ids": [...]}, and prints what the
// tokenizer at `path` makes of each: {"ids": [...], "text": DECODED} or {"text": DECODED}. The exit
// status: 2 with the reason if the file is refused.
int OracleTokens(const char* path);

}  // namespace stagecoach

#endif  // STAGECOACH_TESTS_ORACLE_ORACLE_H_
