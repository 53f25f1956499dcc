// BoundaryPort: one end of an edge to another stage as the executor sees it. It tries to send and to receive the message
// that the program asks for, and books the time of waiting.
// Outbox:    if links carry copies of the device's tensors (CopiesForLinks), a send queues the copy
//            and is done. The message waits here, in order, until its copy has run and the link
//            takes it. At most kOutbox messages wait: the device holds the memory that they are
//            copied from meanwhile. A step ends with an empty outbox.
// Ownership: borrows link, back end and clocks for its life.
// Threads:   executor thread only.
// Units and shapes: a message holds the tuple of values that cross the cut (network/network.h,
//            CellWires), or of their gradients. Once a step it holds that of tied parameters
//            (network/passes/tied.h, CellTies). A micro-batch without samples (the end of a short
//            evaluation mini-batch) travels like any other.
// Errors:    the link's status once it is closed, the device's. FAILED_PRECONDITION for a message
//            of a later step, another micro-batch or another shape. A message of an earlier
//            incarnation, step or attempt is counted and dropped.
#ifndef STAGECOACH_STAGE_EXECUTOR_BOUNDARY_PORT_H_
#define STAGECOACH_STAGE_EXECUTOR_BOUNDARY_PORT_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/ids.h"
#include "plan/costs/card_memory.h"
#include "stage/backends/backend.h"
#include "stage/link/link.h"
#include "stage/watch/phase_clock.h"

namespace stagecoach {

const char* MessageKindName(MessageKind kind);  // "activation", "tied_gradient"

class BoundaryPort {
 public:
  struct Parts {
    Link* link = nullptr;
    StageId self, peer;
    CellId cell;             // of ours, for errors; invalid: the stage has no other
    bool leads_down = true;  // to a cell behind ours
    std::vector<ValueType> outgoing, incoming;            // types of one sample's tuples
    std::vector<ValueType> tied_outgoing, tied_incoming;  // types of tied parameters' tuples
    DType dtype = DType::kF32;                            // of activations
    PhaseClock* phases = nullptr;
    const Clock* clock = nullptr;
    Backend* backend = nullptr;  // null: the link carries the stage's own tensors
  };
  // Enough for the device to have work while a message is copied.
  static constexpr size_t kOutbox = kCardOutbox;

  explicit BoundaryPort(const Parts& parts);

  // True: it took the tuple. False: there was no room, and the caller keeps the tuple for the next
  // try. CHECKs that `kind` flows this way.
  // `binding`: sizes of the micro-batch; read if extents of the tuple's types have names.
  absl::StatusOr<bool> TrySend(MessageKind kind, const Fence& fence, MicroBatchId micro_batch,
                               Tensors* tuple, const Binding& binding = {});
  struct Arrived {
    Binding binding;  // the expected one, with what the message tells beside it
    Tensors tuple;
  };
  // expected: sizes known already; -1 samples: the message's own.
  absl::StatusOr<std::optional<Arrived>> TryReceive(MessageKind kind, const Fence& fence,
                                                    MicroBatchId micro_batch,
                                                    const Binding& expected);

  // Gives the outbox's messages to the link, as far as it takes them. True: it took some.
  absl::StatusOr<bool> SendWaiting();
  bool waiting() const { return !outbox_.empty(); }
  // Books the phase of a wait for the outbox: sending, or the device's phase while it computes.
  void BookWaiting() const;
  // Invalid for tied parameters: their message is of the whole step.
  MicroBatchId waiting_micro_batch() const {
    return IsTied(waiting_kind()) ? MicroBatchId() : outbox_.front().micro_batch;
  }
  MessageKind waiting_kind() const { return outbox_.front().kind; }
  void DropWaiting() { outbox_.clear(); }  // the back end holds the tensors of running copies

  CellId cell() const { return parts_.cell; }
  absl::Status status() const;  // of the link, naming the boundary
  uint64_t stale_messages() const { return stale_messages_; }
  // "stage 1 waits for activation of micro-batch 3 from stage 0 (job a ... step 17 ...)".
  std::string Waiting(MessageKind kind, const Fence& fence, MicroBatchId micro_batch) const;

 private:
  bool Sends(MessageKind kind) const { return FlowsDown(kind) == parts_.leads_down; }
  const std::vector<ValueType>& TypesOf(MessageKind kind) const;
  // True: the message is of this step; false: stale; else an error.
  absl::StatusOr<bool> CheckFence(const Fence& expected, const TensorMessage& message) const;
  // The sizes that the message has.
  absl::StatusOr<Binding> CheckContent(const TensorMessage& message, MessageKind kind,
                                       MicroBatchId micro_batch, const Binding& expected) const;
  std::string TypesText(MessageKind kind, const Binding& expected) const;
  void BookArrival(const TensorMessage& message);
  // True: the link has it; else it is intact.
  bool Offer(MessageKind kind, const Fence& fence, MicroBatchId micro_batch, Tensors* tuple);
  absl::StatusOr<bool> TryCopy(MessageKind kind, const Fence& fence, MicroBatchId micro_batch,
                               Tensors* tuple);
  std::string Name() const;

  struct Outgoing {
    MessageKind kind;
    Fence fence;
    MicroBatchId micro_batch;
    Tensors tuple;  // in the link's memory
    uint64_t copy;  // number of the last tensor's copy; see Backend::LinkCopyDone
  };

  const Parts parts_;
  const bool copies_;  // false: links carry the stage's own tensors
  std::deque<Outgoing> outbox_;
  bool link_is_full_ = false;  // it refused the first message of the outbox
  uint64_t stale_messages_ = 0;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_EXECUTOR_BOUNDARY_PORT_H_
