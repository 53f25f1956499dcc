// Link: one end of the edge between two cells of different stages; activations flow down, gradients
// up.
// Ownership: a message changes hands only when TrySend returns true; a refused one stays intact
//            with the caller. StageRuntime owns the link; StageExecutor borrows it.
// Threads:   one sender and one receiver thread (here the same, the executor's); Close, status and
//            SetReadyCallback from any thread. The callback runs on any thread, under no lock, and
//            must not block. It says that TrySend or TryReceive may now answer differently, or that
//            the link was closed.
// Units and shapes: bounded in messages (credits); FIFO and lossless until closed.
// Errors:    full and empty are answers, not errors. Once closed, status() keeps the first reason,
//            naming boundary and peer. Frames of an old incarnation are counted and dropped.
// See: docs/formats.md, "Link frames"; docs/ARCHITECTURE.md, "A step".
#ifndef STAGECOACH_STAGE_LINK_LINK_H_
#define STAGECOACH_STAGE_LINK_LINK_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "base/ids.h"
#include "plan/schedules/schedule.h"
#include "stage/tensor/tensor.h"

namespace stagecoach {

// Values of tied parameters go the way of activations, their gradients that of gradients
// (network/passes/tied.h).
enum class MessageKind : uint8_t {
  kActivation = 1,
  kGradient = 2,
  kTiedValue = 3,
  kTiedGradient = 4,
  kRows = 5  // of a pass that decodes (stage/executor/decoding_executor.h); they go up
};
constexpr bool FlowsDown(MessageKind kind) {
  return kind == MessageKind::kActivation || kind == MessageKind::kTiedValue;
}
constexpr bool IsTied(MessageKind kind) {
  return kind == MessageKind::kTiedValue || kind == MessageKind::kTiedGradient;
}

struct TensorMessage {
  MessageKind kind = MessageKind::kActivation;
  Fence fence;
  MicroBatchId micro_batch;  // 0 for tied parameters: the message is for the whole step
  Tensors tensors;
  int64_t sent_unix_nanos = 0;  // set by the sender; splits a wait into bubble and transfer
};
int64_t PayloadBytes(const TensorMessage& message);

struct LinkStatistics {
  uint64_t sent_bytes = 0, received_bytes = 0;  // payload
  uint64_t sent_messages = 0, received_messages = 0;
  uint64_t stale_frames = 0;
  uint64_t inflight_messages = 0;  // sent and not yet taken by the peer's executor
  bool connected = true;           // false: the peer has not answered yet
};

class Link {
 public:
  virtual ~Link() = default;
  [[nodiscard]] virtual bool TrySend(TensorMessage&& message) = 0;
  virtual std::optional<TensorMessage> TryReceive() = 0;
  virtual absl::Status status() const = 0;  // ok while open
  virtual void Close(absl::Status reason) = 0;
  virtual void SetReadyCallback(std::function<void()> callback) = 0;
  virtual LinkStatistics statistics() const = 0;
};

// A message that has passed a link, told to whoever watches.
struct LinkTransfer {
  bool sent = false;           // false: received
  bool upstream_peer = false;  // which neighbour
  CellId above;                // of the edge
  MessageKind kind = MessageKind::kActivation;
  Fence fence;
  MicroBatchId micro_batch;
  int64_t bytes = 0;  // payload
  // Begin: the sender's TrySend, by the sender's clock. End: by ours. If sent, its last byte was
  // written to the stream: the neighbour has room for it, and may not have read it yet. If
  // received, it is complete here.
  int64_t begin_unix_nanos = 0, end_unix_nanos = 0;
};
// Called on any thread, under no lock; must not block.
using LinkObserver = std::function<void(const LinkTransfer&)>;

struct LinkOptions {
  int capacity_messages = kLinkCapacity;  // per direction; the memory forecast counts on it
  int64_t chunk_bytes = 512 << 10;        // payload bytes of one frame
};

// Which edge of the pipeline a stream serves; both ends must agree before anything flows. Two stages
// may share several edges: each has a stream with credits of its own, so none starves another.
struct BoundaryId {
  std::string job;
  uint64_t term = 0;
  uint64_t generation = 0;
  CellId above;  // the edge from this cell to the next one
  friend bool operator==(const BoundaryId&, const BoundaryId&) = default;
  friend auto operator<=>(const BoundaryId&, const BoundaryId&) = default;
  std::string ToString() const;  // "job a term 1 generation 2 cells 0 -> 1"
};

// A link that takes messages of any size.
inline constexpr int64_t kAnyMessageBytes = std::numeric_limits<int64_t>::max();

// LinkConnector: makes links across processes. The stage of the cell above dials, that of the cell
// below accepts. Both return at once with a link that is open for TrySend and TryReceive. Later it
// becomes connected, or closes with DEADLINE_EXCEEDED. most_message_bytes: a larger message that
// arrives closes the link, before memory is taken for it. upstream_name: the stage that is to dial,
// if the connector can tell who does; empty: any.
class LinkConnector {
 public:
  virtual ~LinkConnector() = default;
  virtual std::unique_ptr<Link> Dial(const std::string& address, const BoundaryId& boundary,
                                     Allocator& allocator, int64_t most_message_bytes) = 0;
  virtual std::unique_ptr<Link> Accept(const BoundaryId& boundary, const std::string& upstream_name,
                                       Allocator& allocator, int64_t most_message_bytes) = 0;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_LINK_LINK_H_
