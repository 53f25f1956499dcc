#include "stage/executor/boundary_port.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status.h"

namespace stagecoach {

const char* MessageKindName(MessageKind kind) {
  switch (kind) {
    case MessageKind::kActivation:
      return "activation";
    case MessageKind::kGradient:
      return "gradient";
  }
  return "unknown";
}

BoundaryPort::BoundaryPort(const Parts& parts)
    : parts_(parts), copies_(parts.backend != nullptr && CopiesForLinks(*parts.backend)) {
  CHECK(parts.link != nullptr && parts.phases != nullptr && parts.clock != nullptr);
  CHECK(parts.context > 0 && parts.width > 0) << "the shape of the boundary " << Name();
}

MessageKind BoundaryPort::outgoing() const {
  return parts_.self < parts_.peer ? MessageKind::kActivation : MessageKind::kGradient;
}

MessageKind BoundaryPort::incoming() const {
  return parts_.self < parts_.peer ? MessageKind::kGradient : MessageKind::kActivation;
}

absl::StatusOr<bool> BoundaryPort::TrySend(const Fence& fence, MicroBatchId micro_batch,
                                           Tensor* tensor) {
  CHECK(tensor->valid()) << "nothing to send of micro-batch " << micro_batch.value;
  if (copies_) return TryCopy(fence, micro_batch, tensor);
  parts_.phases->Stay(Phase::kSend, micro_batch);
  if (Offer(fence, micro_batch, tensor)) return true;
  RETURN_IF_ERROR(status());
  return false;
}

bool BoundaryPort::Offer(const Fence& fence, MicroBatchId micro_batch, Tensor* tensor) {
  TensorMessage message{.kind = outgoing(),
                        .fence = fence,
                        .micro_batch = micro_batch,
                        .tensors = {std::move(*tensor)},
                        .sent_unix_nanos = parts_.clock->UnixNanos()};
  if (parts_.link->TrySend(std::move(message))) {
    tensor->Reset();
    return true;
  }
  *tensor = std::move(message.tensors.front());  // a refused message is intact
  return false;
}

absl::StatusOr<bool> BoundaryPort::TryCopy(const Fence& fence, MicroBatchId micro_batch,
                                           Tensor* tensor) {
  if (outbox_.size() == kOutbox) {
    BookWaiting();
    return false;
  }
  ASSIGN_OR_RETURN(Tensor copy,
                   MakeTensor(parts_.backend->link_allocator(), MemoryKind::kActivations,
                              tensor->dtype(), tensor->shape()));
  ASSIGN_OR_RETURN(const uint64_t number,
                   Annotate(parts_.backend->CopyToLink(*tensor, copy), Name()));
  tensor->Reset();
  outbox_.push_back({fence, micro_batch, std::move(copy), number});
  return true;
}

void BoundaryPort::BookWaiting() const {
  // With a clock of the device its computing is known, and what is left was the copy and the link.
  if (link_is_full_ || parts_.phases->deferring())
    parts_.phases->Stay(Phase::kSend, outbox_.front().micro_batch);
}

absl::StatusOr<bool> BoundaryPort::SendWaiting() {
  bool sent = false;
  link_is_full_ = false;
  while (!outbox_.empty()) {
    Outgoing& first = outbox_.front();
    ASSIGN_OR_RETURN(const bool copied, Annotate(parts_.backend->LinkCopyDone(first.copy), Name()));
    if (!copied) break;
    if (!Offer(first.fence, first.micro_batch, &first.tensor)) {
      RETURN_IF_ERROR(status());
      link_is_full_ = true;
      break;
    }
    outbox_.pop_front();
    sent = true;
  }
  return sent;
}

absl::StatusOr<std::optional<Tensor>> BoundaryPort::TryReceive(const Fence& fence,
                                                               MicroBatchId micro_batch,
                                                               int64_t rows) {
  while (std::optional<TensorMessage> message = parts_.link->TryReceive()) {
    ASSIGN_OR_RETURN(const bool current, CheckFence(fence, *message));
    if (!current) {
      ++stale_messages_;
      continue;
    }
    RETURN_IF_ERROR(CheckContent(*message, micro_batch, rows));
    BookArrival(*message);
    Tensor tensor = std::move(message->tensors.front());
    if (copies_) {
      ASSIGN_OR_RETURN(tensor, Annotate(parts_.backend->CopyFromLink(tensor), Name()));
    }
    return std::optional<Tensor>(std::move(tensor));
  }
  RETURN_IF_ERROR(status());
  parts_.phases->Stay(Phase::kBubble, micro_batch);
  return std::optional<Tensor>();
}

absl::StatusOr<bool> BoundaryPort::CheckFence(const Fence& expected,
                                              const TensorMessage& message) const {
  const auto age = [](const Fence& fence) {
    return std::tie(fence.term, fence.generation, fence.step, fence.attempt);
  };
  if (message.fence.job == expected.job && age(message.fence) == age(expected)) return true;
  if (message.fence.job == expected.job && age(message.fence) < age(expected)) return false;
  return absl::FailedPreconditionError(absl::StrCat(
      Name(), ": ", MessageKindName(message.kind), " of ", message.fence.ToString(),
      " arrived, the step at hand is ", expected.step, " of generation ", expected.generation));
}

absl::Status BoundaryPort::CheckContent(const TensorMessage& message, MicroBatchId micro_batch,
                                        int64_t rows) const {
  if (message.kind != incoming() || message.micro_batch != micro_batch) {
    return absl::FailedPreconditionError(
        absl::StrCat(Name(), ": ", MessageKindName(message.kind), " of micro-batch ",
                     message.micro_batch.value, " arrived, the program expects ",
                     MessageKindName(incoming()), " of micro-batch ", micro_batch.value));
  }
  const bool one = message.tensors.size() == 1 && message.tensors[0].valid();
  if (one && message.tensors[0].dtype() == parts_.dtype && message.tensors[0].shape().rank() == 2) {
    const Shape& shape = message.tensors[0].shape();
    const bool fits = rows < 0 ? shape[0] % parts_.context == 0 : shape[0] == rows;
    if (fits && shape[1] == parts_.width) return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      Name(), ": ", MessageKindName(message.kind), " of micro-batch ", micro_batch.value, " is ",
      one ? absl::StrCat(DTypeName(message.tensors[0].dtype()),
                         message.tensors[0].shape().ToString())
          : absl::StrCat(message.tensors.size(), " tensors"),
      ", expected one ", DTypeName(parts_.dtype), " tensor of ",
      rows < 0 ? absl::StrCat("a multiple of ", parts_.context) : absl::StrCat(rows),
      " rows, width ", parts_.width, "; both stages must run the same job spec (",
      message.fence.ToString(), ")"));
}

void BoundaryPort::BookArrival(const TensorMessage& message) {
  int64_t under_way = 0;
  if (parts_.phases->current() == Phase::kBubble) {
    // What was on its way is no bubble: the neighbour had done its part.
    under_way = std::max<int64_t>(parts_.clock->UnixNanos() - message.sent_unix_nanos, 0);
  }
  parts_.phases->EnterSince(Phase::kReceiveWait, message.micro_batch, under_way);
}

absl::Status BoundaryPort::status() const { return Annotate(parts_.link->status(), Name()); }

std::string BoundaryPort::Waiting(const Fence& fence, MicroBatchId micro_batch,
                                  bool sending) const {
  return absl::StrCat("stage ", parts_.self.value, " waits ", sending ? "to send " : "for ",
                      MessageKindName(sending ? outgoing() : incoming()), " of micro-batch ",
                      micro_batch.value, sending ? " to" : " from", " stage ", parts_.peer.value,
                      " (", fence.ToString(), ")");
}

std::string BoundaryPort::Name() const { return absl::StrCat("link to stage ", parts_.peer.value); }

}  // namespace stagecoach
