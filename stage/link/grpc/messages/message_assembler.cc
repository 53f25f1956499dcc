#include "stage/link/grpc/messages/message_assembler.h"

#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "base/files/hash.h"

namespace stagecoach {
namespace {

std::string Place(const LinkFrame& frame) {
  return absl::StrCat("step ", frame.step, " micro-batch ", frame.micro_batch, " tensor ",
                      frame.tensor_index, " offset ", frame.offset);
}

bool EndsMessage(const LinkFrame& frame) {
  return frame.tensor_index + 1 == frame.tensor_count &&
         frame.offset + frame.data_bytes == frame.tensor_bytes;
}

}  // namespace

MessageAssembler::MessageAssembler(const BoundaryId& boundary, bool from_above,
                                   Allocator* allocator, int64_t most_bytes)
    : boundary_(boundary),
      from_above_(from_above),
      allocator_(allocator),
      most_bytes_(static_cast<uint64_t>(most_bytes)) {}

absl::Status MessageAssembler::BeginMessage(const LinkFrame& frame) {
  if (frame.tensor_index != 0 || frame.offset != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(Place(frame), ": want the first chunk of a message"));
  }
  message_.emplace();
  message_->kind = frame.kind;
  message_->fence = {boundary_.job, frame.term, frame.generation, frame.step, frame.attempt};
  message_->micro_batch = MicroBatchId(static_cast<int32_t>(frame.micro_batch));
  message_->sent_unix_nanos = frame.sent_unix_nanos;
  tensor_count_ = frame.tensor_count;
  begun_bytes_ = 0;
  return absl::OkStatus();
}

// Of a few bytes that say so memory was taken for 16 GiB.
absl::Status MessageAssembler::BeginTensor(const LinkFrame& frame) {
  begun_bytes_ += frame.tensor_bytes;  // of at most 64 tensors of 2^34
  if (begun_bytes_ > most_bytes_) {
    return absl::InvalidArgumentError(absl::StrCat(Place(frame), ": makes a message of ",
                                                   begun_bytes_, " bytes, and this boundary has ",
                                                   "none of more than ", most_bytes_));
  }
  absl::StatusOr<Tensor> tensor =
      MakeTensor(*allocator_, MemoryKind::kActivations, frame.dtype, Shape(frame.shape));
  if (!tensor.ok()) return Annotate(tensor.status(), Place(frame));
  message_->tensors.push_back(*std::move(tensor));
  next_offset_ = 0;
  return absl::OkStatus();
}

absl::Status MessageAssembler::CheckOrder(const LinkFrame& frame) const {
  const Tensor& tensor = message_->tensors.back();
  const bool fits = frame.kind == message_->kind && frame.step == message_->fence.step &&
                    frame.attempt == message_->fence.attempt &&
                    static_cast<int32_t>(frame.micro_batch) == message_->micro_batch.value &&
                    frame.tensor_count == tensor_count_ &&
                    frame.tensor_index + 1 == message_->tensors.size() &&
                    frame.dtype == tensor.dtype() && frame.shape == tensor.shape().extents() &&
                    frame.offset == next_offset_;
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(Place(frame), ": does not continue micro-batch ", message_->micro_batch.value,
                   " tensor ", message_->tensors.size() - 1, " at offset ", next_offset_));
}

absl::StatusOr<MessageAssembler::Result> MessageAssembler::Add(const LinkFrame& frame,
                                                               Pieces pieces) {
  const auto incarnation = std::tie(frame.term, frame.generation);
  const auto ours = std::tie(boundary_.term, boundary_.generation);
  if (incarnation < ours) return Result{std::nullopt, true, EndsMessage(frame)};
  if (incarnation != ours) {
    return absl::InvalidArgumentError(absl::StrCat(Place(frame), ": of term ", frame.term,
                                                   " generation ", frame.generation,
                                                   ", newer than the stream's own"));
  }
  if (FlowsDown(frame.kind) != from_above_) {
    return absl::InvalidArgumentError(
        absl::StrCat(Place(frame), ": activations flow down and gradients up"));
  }
  if (!message_.has_value()) RETURN_IF_ERROR(BeginMessage(frame));
  const bool tensor_complete =
      !message_->tensors.empty() &&
      next_offset_ == static_cast<uint64_t>(message_->tensors.back().bytes());
  if (message_->tensors.empty() ||
      (tensor_complete && frame.tensor_index == message_->tensors.size())) {
    RETURN_IF_ERROR(BeginTensor(frame));
  }
  // The head's checksum has no length of the data: a flipped bit can make none of it.
  if (frame.data_bytes == 0 && frame.tensor_bytes > 0) {
    return absl::DataLossError(absl::StrCat(Place(frame), ": a chunk without data"));
  }
  RETURN_IF_ERROR(CheckOrder(frame));

  const std::span<std::byte> target =
      message_->tensors.back().span().subspan(frame.offset, frame.data_bytes);
  CopyPieces(pieces, frame.data_position, target);
  if (const uint32_t crc = Crc32c(target); crc != frame.crc32c) {
    return absl::DataLossError(absl::StrCat(Place(frame), ": ", frame.data_bytes,
                                            " bytes have CRC-32C ", crc, ", sent with ",
                                            frame.crc32c));
  }
  next_offset_ += frame.data_bytes;
  Result result;
  if (EndsMessage(frame)) {
    result.message = std::move(message_);
    message_.reset();
  }
  return result;
}

}  // namespace stagecoach
