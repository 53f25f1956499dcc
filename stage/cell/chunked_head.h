// ChunkedHead: the last layer and the loss of a micro-batch together, chunk by chunk of rows
// (network/passes/head_chunks.h). For each chunk it makes the logits and turns them into their
// gradient. It adds to the gradient of the weight, and writes the chunk's rows of the gradient of
// the layer's input. Then the next chunk uses their memory. So the head's backward is a part of the
// loss, in a backward of two parts too. In every schedule losses, and the chunks within them, come
// in ascending order. So the weight's gradient is added up in one order.
// Ownership: borrows the layer and the objective, which were made by rows (HeadByRows), and the
//            back end.
// Threads:   executor thread only.
// Units and shapes: x is [rows, width], targets and weights a number a row.
// Errors:    those of the layer and of the objective.
#ifndef STAGECOACH_STAGE_CELL_CHUNKED_HEAD_H_
#define STAGECOACH_STAGE_CELL_CHUNKED_HEAD_H_

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "stage/backends/backend.h"
#include "stage/cell/objective_runner.h"
#include "stage/layers/layer_runner.h"

namespace stagecoach {

// Called with logits and their targets before the loss, which may overwrite them. A call has those
// of a whole micro-batch, or of each of its chunks in turn.
using LookAtLogits = std::function<absl::Status(const Tensor& logits, const Tensor& targets)>;

class ChunkedHead {
 public:
  // gradient: Train returns the gradient of x, as an earlier layer is trained.
  ChunkedHead(int64_t chunk_rows, bool gradient, LayerRunner& head, ObjectiveRunner& objective,
              Backend& backend)
      : chunk_rows_(chunk_rows),
        gradient_(gradient),
        head_(head),
        objective_(objective),
        backend_(backend) {}

  // Returns the gradient of x, or nothing. `context`: the micro-batch's, in samples.
  absl::StatusOr<Tensors> Train(const ForwardContext& context, const Tensor& x,
                                const ObjectiveRunner::Targets& targets, const LookAtLogits& look);
  absl::Status Evaluate(const ForwardContext& context, const Tensor& x,
                        const ObjectiveRunner::Targets& targets, const LookAtLogits& look);

 private:
  // One chunk, as input of layer and objective.
  struct Chunk {
    ForwardContext context;  // its samples are rows
    int64_t first = 0;       // row
    ObjectiveRunner::Part part;

    Tensor Rows(const Tensor& matrix) const;
    ObjectiveRunner::Targets Of(const ObjectiveRunner::Targets& whole) const;
  };
  // Calls `run` for each chunk, in ascending order.
  absl::Status ForEach(const ForwardContext& context, int64_t rows,
                       const std::function<absl::Status(const Chunk&)>& run) const;

  const int64_t chunk_rows_;
  const bool gradient_;
  LayerRunner& head_;
  ObjectiveRunner& objective_;
  Backend& backend_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_CELL_CHUNKED_HEAD_H_
