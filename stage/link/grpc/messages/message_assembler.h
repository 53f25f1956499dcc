// MessageAssembler: puts the chunks of one direction together again, with one copy from the
// received slices into tensors of this stage.
// Ownership: borrows the allocator, which outlives it.
// Threads:   thread-compatible; used by the stream's read reactions, one after the other.
// Errors:    DATA_LOSS for a chunk whose bytes do not match its CRC-32C: Drop, and the message can
//            come again. INVALID_ARGUMENT for chunks that are out of order or contradict each
//            other, or belong to a message larger than any that the boundary carries;
//            RESOURCE_EXHAUSTED from the allocator. They end the link. Frames of an older
//            incarnation are counted and dropped.
#ifndef STAGECOACH_STAGE_LINK_GRPC_MESSAGES_MESSAGE_ASSEMBLER_H_
#define STAGECOACH_STAGE_LINK_GRPC_MESSAGES_MESSAGE_ASSEMBLER_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "stage/link/grpc/messages/frame_codec.h"
#include "stage/link/link.h"

namespace stagecoach {

class MessageAssembler {
 public:
  struct Result {
    std::optional<TensorMessage> message;  // complete with this chunk
    bool stale = false;                    // dropped
    bool stale_message_ended = false;      // a stale message is complete; its credit is due
  };

  // from_above: messages flow down.
  // most_bytes: upper bound of a message's tensors together.
  MessageAssembler(const BoundaryId& boundary, bool from_above, Allocator* allocator,
                   int64_t most_bytes = kAnyMessageBytes);
  absl::StatusOr<Result> Add(const LinkFrame& frame, Pieces pieces);
  void Drop() { message_.reset(); }  // drops the unfinished message

 private:
  absl::Status CheckOrder(const LinkFrame& frame) const;
  absl::Status BeginMessage(const LinkFrame& frame);
  absl::Status BeginTensor(const LinkFrame& frame);

  const BoundaryId boundary_;
  const bool from_above_;
  Allocator* const allocator_;
  const uint64_t most_bytes_;
  std::optional<TensorMessage> message_;  // the unfinished one
  uint32_t tensor_count_ = 0;
  uint64_t begun_bytes_ = 0;  // of its tensors so far, the last one included
  uint64_t next_offset_ = 0;  // in the last tensor of message_
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_LINK_GRPC_MESSAGES_MESSAGE_ASSEMBLER_H_
