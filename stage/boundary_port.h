// BoundaryPort: one neighbour as the executor sees it: tries to send and to receive the message
// that the program asks for, and books the time of waiting. Ownership: borrows link and clocks for
// its life.  Threads: executor thread only. Units and shapes: a message holds one float32 tensor
// [rows, width]; no rows: a micro-batch without
//            sequences (the end of a short evaluation mini-batch), which travels like any other.
// Errors:    the link's status once it is closed; FAILED_PRECONDITION for a message of a later
// step,
//            another micro-batch or another shape. A message of an earlier incarnation, step or
//            attempt is counted and dropped.
#ifndef STAGECOACH_STAGE_BOUNDARY_PORT_H_
#define STAGECOACH_STAGE_BOUNDARY_PORT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "base/ids.h"
#include "stage/backends/backend.h"
#include "stage/link/link.h"
#include "stage/phase_clock.h"

namespace stagecoach {

const char* MessageKindName(MessageKind kind);  // "activation", "gradient"

class BoundaryPort {
 public:
  struct Parts {
    Link* link = nullptr;
    StageId self, peer;
    int64_t width = 0;    // of the boundary's activations
    int64_t context = 0;  // rows of one sequence
    DType dtype = DType::kF32;
    PhaseClock* phases = nullptr;
    const Clock* clock = nullptr;
    Backend* backend = nullptr;  // null: what the link carries is what the stage computes with
  };
  explicit BoundaryPort(const Parts& parts);

  // Takes the tensor if there was room for it (true). Otherwise the caller keeps it for the next
  // try; it may have become the copy that the link carries.
  absl::StatusOr<bool> TrySend(const Fence& fence, MicroBatchId micro_batch, Tensor* tensor);
  // rows: how many are expected, -1 if the message tells.
  absl::StatusOr<std::optional<Tensor>> TryReceive(const Fence& fence, MicroBatchId micro_batch,
                                                   int64_t rows);

  absl::Status status() const;  // of the link, naming the boundary
  uint64_t stale_messages() const { return stale_messages_; }
  // "stage 1 waits for activation of micro-batch 3 from stage 0 (job a ... step 17 ...)".
  std::string Waiting(const Fence& fence, MicroBatchId micro_batch, bool sending) const;

 private:
  MessageKind outgoing() const;
  MessageKind incoming() const;
  // True: of this step; false: stale; else an error.
  absl::StatusOr<bool> CheckFence(const Fence& expected, const TensorMessage& message) const;
  absl::Status CheckContent(const TensorMessage& message, MicroBatchId micro_batch,
                            int64_t rows) const;
  void BookArrival(const TensorMessage& message);
  // Between the device's memory and the links', where these differ.
  bool staging() const;
  absl::Status StageForLink(Tensor* tensor);
  absl::StatusOr<Tensor> FromLink(Tensor tensor);
  std::string Name() const;

  const Parts parts_;
  Tensor staged_;  // the copy of a tensor that was refused; held, so that its address is its name
  uint64_t stale_messages_ = 0;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_BOUNDARY_PORT_H_
