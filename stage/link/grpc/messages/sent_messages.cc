#include "stage/link/grpc/messages/sent_messages.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace stagecoach {

absl::StatusOr<std::vector<TensorMessage>> SentMessages::SetTaken(uint64_t taken) {
  if (taken < taken_ || taken > next_) {
    return absl::InvalidArgumentError(absl::StrCat("peer says that it took ", taken,
                                                   " messages, but it has taken ", taken_,
                                                   " and was sent ", next_));
  }
  std::vector<TensorMessage> let_go;
  for (; taken_ < taken; ++taken_) {
    let_go.push_back(std::move(kept_.front().message));
    kept_.pop_front();
  }
  return let_go;
}

void SentMessages::BeginMessage() {
  begun_ = false;
  tensor_ = chunk_ = 0;
  offset_ = 0;
}

absl::Status SentMessages::GoBackTo(uint64_t next) {
  if (next < taken_ || next < asked_ || next > next_) {
    return absl::InvalidArgumentError(absl::StrCat("peer wants message ", next,
                                                   " again, but it has taken ", taken_, ", had ",
                                                   asked_, " and was sent ", next_));
  }
  next_ = asked_ = next;
  BeginMessage();
  return absl::OkStatus();
}

std::optional<SentMessages::Chunk> SentMessages::TakeChunk() {
  if (next_ - taken_ >= kept_.size()) return std::nullopt;
  if (!begun_ && next_ - taken_ >= room_) return std::nullopt;
  begun_ = true;
  const Kept& kept = At(next_);
  const TensorMessage& message = kept.message;
  const Tensor& tensor = message.tensors[tensor_];
  Chunk chunk;
  chunk.tensor = tensor;
  chunk.message = next_;
  LinkFrame& frame = chunk.frame;
  frame.term = message.fence.term;
  frame.generation = message.fence.generation;
  frame.step = message.fence.step;
  frame.attempt = message.fence.attempt;
  frame.kind = message.kind;
  frame.micro_batch = static_cast<uint32_t>(message.micro_batch.value);
  frame.tensor_index = static_cast<uint32_t>(tensor_);
  frame.tensor_count = static_cast<uint32_t>(message.tensors.size());
  frame.dtype = tensor.dtype();
  frame.shape = tensor.shape().extents();
  frame.offset = static_cast<uint64_t>(offset_);
  frame.sent_unix_nanos = message.sent_unix_nanos;
  frame.data_bytes =
      static_cast<uint64_t>(std::min<int64_t>(chunk_bytes_, tensor.bytes() - offset_));
  chunk.has_checksum = chunk_ < kept.checksums.size();
  if (chunk.has_checksum) frame.crc32c = kept.checksums[chunk_];
  ++chunk_;
  offset_ += static_cast<int64_t>(frame.data_bytes);
  if (offset_ == tensor.bytes()) {
    ++tensor_;
    offset_ = 0;
  }
  if (tensor_ == message.tensors.size()) {
    ++next_;
    chunk.ends_message = next_ > ended_;
    ended_ = std::max(ended_, next_);
    BeginMessage();
  }
  return chunk;
}

void SentMessages::KeepChecksum(const Chunk& chunk, uint32_t crc32c) {
  // A strange peer may have taken it already: its last chunk is still to be written.
  if (chunk.message < taken_ || chunk.message - taken_ >= kept_.size()) return;
  kept_[chunk.message - taken_].checksums.push_back(crc32c);
}

std::deque<TensorMessage> SentMessages::Release() {
  std::deque<TensorMessage> messages;
  for (Kept& kept : kept_) messages.push_back(std::move(kept.message));
  kept_.clear();
  taken_ = asked_ = next_ = ended_;
  BeginMessage();
  return messages;
}

}  // namespace stagecoach
