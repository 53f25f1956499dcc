#include "stage/executor/boundary_port.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/errors/status.h"

namespace stagecoach {

namespace {

// "activation of micro-batch 3", "tied_value".
std::string MessageText(MessageKind kind, MicroBatchId micro_batch) {
  return IsTied(kind) ? MessageKindName(kind)
                      : absl::StrCat(MessageKindName(kind), " of micro-batch ", micro_batch.value);
}

std::string TupleText(const Tensors& tuple) {
  std::string text;
  for (const Tensor& tensor : tuple) {
    absl::StrAppend(&text, text.empty() ? "" : " and ",
                    tensor.valid()
                        ? absl::StrCat(DTypeName(tensor.dtype()), tensor.shape().ToString())
                        : std::string("nothing"));
  }
  return text.empty() ? "nothing" : text;
}

}  // namespace

const char* MessageKindName(MessageKind kind) {
  switch (kind) {
    case MessageKind::kActivation:
      return "activation";
    case MessageKind::kGradient:
      return "gradient";
    case MessageKind::kTiedValue:
      return "tied_value";
    case MessageKind::kTiedGradient:
      return "tied_gradient";
    case MessageKind::kRows:
      return "rows";
  }
  return "unknown";
}

BoundaryPort::BoundaryPort(const Parts& parts)
    : parts_(parts), copies_(parts.backend != nullptr && CopiesForLinks(*parts.backend)) {
  CHECK(parts.link != nullptr && parts.phases != nullptr && parts.clock != nullptr);
  CHECK(!parts.outgoing.empty() || !parts.incoming.empty()) << "nothing crosses " << Name();
}

const std::vector<ValueType>& BoundaryPort::TypesOf(MessageKind kind) const {
  if (Sends(kind)) return IsTied(kind) ? parts_.tied_outgoing : parts_.outgoing;
  return IsTied(kind) ? parts_.tied_incoming : parts_.incoming;
}

absl::StatusOr<bool> BoundaryPort::TrySend(MessageKind kind, const Fence& fence,
                                           MicroBatchId micro_batch, Tensors* tuple,
                                           const Binding& binding) {
  CHECK(Sends(kind)) << MessageKindName(kind) << " to stage " << parts_.peer.value;
  const std::vector<ValueType>& types = TypesOf(kind);
  CHECK_EQ(tuple->size(), types.size()) << "values: " << MessageText(kind, micro_batch);
  for (size_t i = 0; i < types.size(); ++i) {
    if (!types[i].shape.has_lengths()) continue;
    (*tuple)[i] = (*tuple)[i].Reshaped(SentShape(types[i], binding));
  }
  if (copies_) return TryCopy(kind, fence, micro_batch, tuple);
  parts_.phases->Stay(Phase::kSend, micro_batch, parts_.cell);
  if (Offer(kind, fence, micro_batch, tuple)) return true;
  RETURN_IF_ERROR(status());
  return false;
}

bool BoundaryPort::Offer(MessageKind kind, const Fence& fence, MicroBatchId micro_batch,
                         Tensors* tuple) {
  TensorMessage message{.kind = kind,
                        .fence = fence,
                        .micro_batch = micro_batch,
                        .tensors = std::move(*tuple),
                        .sent_unix_nanos = parts_.clock->UnixNanos()};
  if (parts_.link->TrySend(std::move(message))) {
    tuple->clear();
    return true;
  }
  *tuple = std::move(message.tensors);  // a refused message is intact
  return false;
}

absl::StatusOr<bool> BoundaryPort::TryCopy(MessageKind kind, const Fence& fence,
                                           MicroBatchId micro_batch, Tensors* tuple) {
  if (outbox_.size() == kOutbox) {
    BookWaiting();
    return false;
  }
  Outgoing message{
      .kind = kind, .fence = fence, .micro_batch = micro_batch, .tuple = {}, .copy = 0};
  for (const Tensor& tensor : *tuple) {
    ASSIGN_OR_RETURN(Tensor copy,
                     MakeTensor(parts_.backend->link_allocator(), MemoryKind::kActivations,
                                tensor.dtype(), tensor.shape()));
    ASSIGN_OR_RETURN(message.copy, Annotate(parts_.backend->CopyToLink(tensor, copy), Name()));
    message.tuple.push_back(std::move(copy));
  }
  tuple->clear();
  outbox_.push_back(std::move(message));
  return true;
}

void BoundaryPort::BookWaiting() const {
  // With a clock of the device its computing is known, and what is left was the copy and the link.
  if (link_is_full_ || parts_.phases->deferring())
    parts_.phases->Stay(Phase::kSend, outbox_.front().micro_batch, parts_.cell);
}

absl::StatusOr<bool> BoundaryPort::SendWaiting() {
  bool sent = false;
  link_is_full_ = false;
  while (!outbox_.empty()) {
    Outgoing& first = outbox_.front();
    ASSIGN_OR_RETURN(const bool copied, Annotate(parts_.backend->LinkCopyDone(first.copy), Name()));
    if (!copied) break;
    if (!Offer(first.kind, first.fence, first.micro_batch, &first.tuple)) {
      RETURN_IF_ERROR(status());
      link_is_full_ = true;
      break;
    }
    outbox_.pop_front();
    sent = true;
  }
  return sent;
}

absl::StatusOr<std::optional<BoundaryPort::Arrived>> BoundaryPort::TryReceive(
    MessageKind kind, const Fence& fence, MicroBatchId micro_batch, const Binding& expected) {
  CHECK(!Sends(kind)) << MessageKindName(kind) << " from stage " << parts_.peer.value;
  while (std::optional<TensorMessage> message = parts_.link->TryReceive()) {
    ASSIGN_OR_RETURN(const bool current, CheckFence(fence, *message));
    if (!current) {
      ++stale_messages_;
      continue;
    }
    Arrived arrived;
    ASSIGN_OR_RETURN(arrived.binding, CheckContent(*message, kind, micro_batch, expected));
    BookArrival(*message);
    arrived.tuple = std::move(message->tensors);
    for (size_t i = 0; i < arrived.tuple.size(); ++i) {
      const ValueType& type = TypesOf(kind)[i];
      if (!type.shape.has_lengths()) continue;
      arrived.tuple[i] = arrived.tuple[i].Reshaped(RuntimeShape(type, arrived.binding));
    }
    if (copies_) {
      for (Tensor& tensor : arrived.tuple) {
        ASSIGN_OR_RETURN(tensor, Annotate(parts_.backend->CopyFromLink(tensor), Name()));
      }
    }
    return std::optional<Arrived>(std::move(arrived));
  }
  RETURN_IF_ERROR(status());
  parts_.phases->Stay(Phase::kBubble, micro_batch, parts_.cell);
  return std::optional<Arrived>();
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

absl::StatusOr<Binding> BoundaryPort::CheckContent(const TensorMessage& message, MessageKind kind,
                                                   MicroBatchId micro_batch,
                                                   const Binding& expected) const {
  if (message.kind != kind || message.micro_batch != micro_batch) {
    return absl::FailedPreconditionError(
        absl::StrCat(Name(), ": ", MessageText(message.kind, message.micro_batch),
                     " arrived, the program expects ", MessageText(kind, micro_batch)));
  }
  const std::vector<ValueType>& types = TypesOf(kind);
  bool fits = message.tensors.size() == types.size();
  Binding found = expected;
  for (size_t i = 0; fits && i < types.size(); ++i) {
    const Tensor& tensor = message.tensors[i];
    fits = tensor.valid() && tensor.dtype() == ElementDType(types[i].element, parts_.dtype) &&
           ReadSentShape(types[i], tensor.shape(), &found);
  }
  if (fits) return found;
  return absl::FailedPreconditionError(
      absl::StrCat(Name(), ": ", MessageText(kind, micro_batch), " is ", TupleText(message.tensors),
                   ", expected ", TypesText(kind, expected),
                   "; both stages must run the same job spec (", message.fence.ToString(), ")"));
}

// Of what comes in: "F32[192, 32] and F32[3, 8]", or "F32[64, 32] for each sample".
std::string BoundaryPort::TypesText(MessageKind kind, const Binding& expected) const {
  std::string text;
  for (const ValueType& type : TypesOf(kind)) {
    const char* name = DTypeName(ElementDType(type.element, parts_.dtype));
    absl::StrAppend(
        &text, text.empty() ? "" : " and ", name,
        expected.samples < 0
            ? SentShape(type, {1, expected.lengths}).ToString() +
                  (type.shape.has_lengths() ? ", or less, for each sample" : " for each sample")
            : SentShape(type, expected).ToString());
  }
  return text;
}

void BoundaryPort::BookArrival(const TensorMessage& message) {
  int64_t under_way = 0;
  if (parts_.phases->current() == Phase::kBubble) {
    // What was on its way is no bubble: the neighbour had done its part.
    under_way = std::max<int64_t>(parts_.clock->UnixNanos() - message.sent_unix_nanos, 0);
  }
  parts_.phases->EnterSince(Phase::kReceiveWait, message.micro_batch, under_way, parts_.cell);
}

absl::Status BoundaryPort::status() const { return Annotate(parts_.link->status(), Name()); }

std::string BoundaryPort::Waiting(MessageKind kind, const Fence& fence,
                                  MicroBatchId micro_batch) const {
  const bool sending = Sends(kind);
  return absl::StrCat("stage ", parts_.self.value, " waits ", sending ? "to send " : "for ",
                      MessageText(kind, micro_batch),
                      parts_.cell.valid() ? absl::StrCat(" of cell ", parts_.cell.value) : "",
                      sending ? " to" : " from", " stage ", parts_.peer.value, " (",
                      fence.ToString(), ")");
}

std::string BoundaryPort::Name() const { return absl::StrCat("link to stage ", parts_.peer.value); }

}  // namespace stagecoach
