#include "stage/link/grpc/link_core.h"

#include <grpcpp/support/status.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/status.h"
#include "stage/link/grpc/frame_buffer.h"

namespace stagecoach {
namespace {

int64_t PayloadBytes(const TensorMessage& message) {
  int64_t bytes = 0;
  for (const Tensor& tensor : message.tensors) bytes += tensor.bytes();
  return bytes;
}

// What makes no sense was changed on its way or sent by a broken stage. The step can be repeated, whereas
// INVALID_ARGUMENT of a stage says that the job itself is wrong.
absl::Status AsLinksFault(const absl::Status& status) {
  if (!absl::IsInvalidArgument(status)) return status;
  return absl::DataLossError(status.message());
}

// Of a stream that was refused. The coordinator would take some codes for the fault of the job or of this stage:
// - UNIMPLEMENTED, INTERNAL, UNKNOWN, RESOURCE_EXHAUSTED: no stage refuses with them. gRPC makes them up where a bit was
//   flipped on the way, the first for a damaged name of the method, the last for a damaged length of the hello.
// - PERMISSION_DENIED, UNAUTHENTICATED: the certificate that this stage had just then; the next stream has the newest.
absl::Status Refusal(const grpc::Status& status, const std::string& text) {
  const absl::Status plain(static_cast<absl::StatusCode>(status.error_code()), text);
  switch (plain.code()) {
    case absl::StatusCode::kUnimplemented:
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kUnknown:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated:
    case absl::StatusCode::kResourceExhausted:
      return absl::UnavailableError(
          absl::StrCat(text, " (", absl::StatusCodeToString(plain.code()), ")"));
    default:
      return AsLinksFault(plain);
  }
}

}  // namespace

LinkCore::LinkCore(Options options)
    : options_(std::move(options)),
      assembler_(options_.boundary, !options_.upstream_end, options_.allocator,
                 options_.most_message_bytes) {
  CHECK(options_.link.capacity_messages >= 1) << "without a buffer two neighbours block each other";
  CHECK(options_.link.chunk_bytes >= 1) << "a chunk carries something";
}

std::string LinkCore::Name() const {
  return absl::StrCat("link ", options_.boundary.ToString(), ", peer ", options_.peer);
}

bool LinkCore::TrySend(TensorMessage&& message) {
  CHECK(FlowsDown(message.kind) == options_.upstream_end)
      << "activations flow down and gradients up";
  CHECK(!message.tensors.empty() && message.tensors.size() <= kMaxTensorsPerMessage)
      << "a message carries 1 to 64 tensors";
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!closed_.ok()) return false;
    if (outstanding_ >= static_cast<uint64_t>(options_.link.capacity_messages)) return false;
    const auto bytes = static_cast<uint64_t>(PayloadBytes(message));
    if (message.sent_unix_nanos == 0) message.sent_unix_nanos = SystemClock::Get()->UnixNanos();
    outgoing_.push_back({std::move(message)});
    ++outstanding_;
    ++statistics_.sent_messages;
    statistics_.sent_bytes += bytes;
    options_.totals->sent_bytes += bytes;
  }
  Pump();
  return true;
}

std::optional<TensorMessage> LinkCore::TryReceive() {
  std::optional<TensorMessage> message;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (incoming_.empty()) return std::nullopt;
    message.emplace(std::move(incoming_.front()));
    incoming_.pop_front();
    ++statistics_.received_messages;
    statistics_.received_bytes += static_cast<uint64_t>(PayloadBytes(*message));
    ++credit_due_;
  }
  Pump();
  return message;
}

absl::Status LinkCore::status() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return closed_;
}

bool LinkCore::connected() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return connected_;
}

LinkStatistics LinkCore::statistics() const {
  std::lock_guard<std::mutex> lock(mutex_);
  LinkStatistics result = statistics_;
  result.inflight_messages = outstanding_;
  result.connected = connected_;
  return result;
}

void LinkCore::SetReadyCallback(std::function<void()> callback) {
  auto shared = std::make_shared<const std::function<void()>>(std::move(callback));
  std::lock_guard<std::mutex> lock(mutex_);
  callback_ = std::move(shared);
}

void LinkCore::Notify() {
  std::shared_ptr<const std::function<void()>> callback;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    callback = callback_;
  }
  if (callback != nullptr && *callback) (*callback)();
}

void LinkCore::Close(const absl::Status& reason) {
  CHECK(!reason.ok()) << "a link closes for a reason";
  CloseWith(Annotate(reason, Name()));
}

void LinkCore::Fail(const absl::Status& reason) { CloseWith(Annotate(reason, Name())); }

void LinkCore::CloseWith(const absl::Status& reason) {
  std::deque<Outgoing> outgoing;  // tensors are freed outside the mutex
  std::deque<TensorMessage> incoming;
  std::shared_ptr<LinkStream> cancelled, ended;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!closed_.ok()) return;
    closed_ = reason;
    outgoing.swap(outgoing_);
    incoming.swap(incoming_);
    if (stream_ != nullptr && (stream_->is_client() || write_in_flight_)) cancelled = stream_;
    ended = TakeEndLocked();
  }
  if (cancelled != nullptr) cancelled->Cancel();
  if (ended != nullptr) ended->End(reason);
  Notify();
}

// The stream to End now, if it is time: no write may follow, and none is outstanding.
std::shared_ptr<LinkStream> LinkCore::TakeEndLocked() {
  if (stream_ == nullptr || ended_ || write_in_flight_) return nullptr;
  if (closed_.ok() && !reads_over_) return nullptr;
  ended_ = true;
  return stream_;
}

void LinkCore::Detach() {
  std::unique_lock<std::mutex> lock(mutex_);
  CHECK(!closed_.ok()) << "a link is closed before its owner lets go";
  idle_.wait(lock, [this] { return reading_ == 0; });
}

void LinkCore::Attach(std::shared_ptr<LinkStream> stream, std::optional<LinkHello> peer_hello) {
  std::shared_ptr<LinkStream> refused;
  absl::Status reason;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    CHECK(stream_ == nullptr) << "one stream per boundary and generation";
    stream_ = std::move(stream);
    hello_due_ = true;
    reason = closed_;
    if (!closed_.ok()) refused = TakeEndLocked();
    if (closed_.ok() && peer_hello.has_value()) {
      connected_ = true;
      wire_credit_ = peer_hello->capacity;
      ++options_.totals->connections;
    }
  }
  if (refused != nullptr) {
    refused->Cancel();
    refused->End(reason);
    return;
  }
  Pump();
}

absl::Status LinkCore::Handle(const LinkHello& hello) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (connected_) return absl::InvalidArgumentError("a second hello");
  if (hello.protocol != kLinkProtocol) {
    return absl::FailedPreconditionError(absl::StrCat("peer speaks link protocol ", hello.protocol,
                                                      ", this program ", kLinkProtocol));
  }
  if (hello.boundary != options_.boundary) {
    return absl::InvalidArgumentError(
        absl::StrCat("peer answered for ", hello.boundary.ToString()));
  }
  connected_ = true;
  wire_credit_ = hello.capacity;
  ++options_.totals->connections;
  return absl::OkStatus();
}

absl::Status LinkCore::Handle(const LinkCredit& credit) {
  std::lock_guard<std::mutex> lock(mutex_);
  // What is still queued here was never sent, so it cannot have been taken there.
  const uint64_t on_wire = outstanding_ - std::min<uint64_t>(outstanding_, outgoing_.size());
  if (credit.messages > on_wire) {
    return absl::InvalidArgumentError(
        absl::StrCat("peer credits ", credit.messages, " messages, but has only ", on_wire));
  }
  outstanding_ -= credit.messages;
  wire_credit_ += credit.messages;
  return absl::OkStatus();
}

LinkTransfer LinkCore::TransferOf(const TensorMessage& message) const {
  LinkTransfer transfer;
  transfer.sent = FlowsDown(message.kind) == options_.upstream_end;
  transfer.upstream_peer = !options_.upstream_end;
  transfer.kind = message.kind;
  transfer.fence = message.fence;
  transfer.micro_batch = message.micro_batch;
  transfer.bytes = PayloadBytes(message);
  transfer.begin_unix_nanos = message.sent_unix_nanos;
  return transfer;
}

void LinkCore::Deliver(TensorMessage message) {
  options_.totals->received_bytes += static_cast<uint64_t>(PayloadBytes(message));
  if (options_.on_transfer) {
    LinkTransfer transfer = TransferOf(message);
    transfer.end_unix_nanos = SystemClock::Get()->UnixNanos();
    options_.on_transfer(transfer);
  }
  std::lock_guard<std::mutex> lock(mutex_);
  if (closed_.ok()) incoming_.push_back(std::move(message));
}

absl::Status LinkCore::Handle(const LinkFrame& frame, Pieces pieces) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!connected_) return absl::InvalidArgumentError("a frame before the hello");
    // One more than we gave room for may not even begin: memory is bounded by credits.
    if (incoming_.size() >= static_cast<size_t>(options_.link.capacity_messages)) {
      return absl::InvalidArgumentError(absl::StrCat("peer sent more than the ",
                                                     options_.link.capacity_messages,
                                                     " messages it had credit for"));
    }
  }
  ASSIGN_OR_RETURN(MessageAssembler::Result result, assembler_.Add(frame, pieces));
  // A large message on a slow network is no stall.
  if (options_.progress != nullptr && !result.stale) options_.progress->Tick();
  if (result.message.has_value()) Deliver(*std::move(result.message));
  if (result.stale) {
    std::lock_guard<std::mutex> lock(mutex_);
    ++statistics_.stale_frames;
    if (result.stale_message_ended) ++credit_due_;
  }
  return absl::OkStatus();
}

absl::Status LinkCore::HandleBuffer(const grpc::ByteBuffer& buffer) {
  ASSIGN_OR_RETURN(const ReceivedMessage received, ReadBuffer(buffer));
  const LinkMessage& message = received.message;
  if (const auto* hello = std::get_if<LinkHello>(&message)) return Handle(*hello);
  if (const auto* credit = std::get_if<LinkCredit>(&message)) return Handle(*credit);
  return Handle(std::get<LinkFrame>(message), received.pieces);
}

bool LinkCore::OnRead(const grpc::ByteBuffer& buffer) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!closed_.ok()) return false;
    ++reading_;
  }
  const absl::Status handled = HandleBuffer(buffer);
  bool open = false;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    --reading_;
    open = closed_.ok() && handled.ok();
  }
  idle_.notify_all();
  if (!handled.ok()) {
    Fail(AsLinksFault(handled));
    return false;
  }
  Pump();
  Notify();
  return open;
}

void LinkCore::OnReadFailed() {
  std::shared_ptr<LinkStream> ended;
  bool client = false;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    reads_over_ = true;
    client = stream_ != nullptr && stream_->is_client();
    if (client) ended = TakeEndLocked();
  }
  if (ended != nullptr) ended->End(absl::OkStatus());
  if (!client) Fail(absl::UnavailableError("the peer's stream ended"));
}

void LinkCore::OnWriteDone(bool ok) {
  write_buffer_.Clear();
  std::shared_ptr<LinkStream> ended;
  absl::Status reason;
  bool server_broke = false;
  std::optional<LinkTransfer> finished;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    CHECK(write_in_flight_) << "a write ended that nobody started";
    write_in_flight_ = false;
    finished.swap(finishing_);
    if (!ok) {
      reads_over_ = reads_over_ || (stream_ != nullptr && stream_->is_client());
      server_broke = stream_ != nullptr && !stream_->is_client() && closed_.ok();
    }
    reason = closed_;
    ended = TakeEndLocked();
  }
  if (ended != nullptr) ended->End(reason);
  if (server_broke) Fail(absl::UnavailableError("the peer's stream ended"));
  if (ok && finished.has_value()) {
    finished->end_unix_nanos = SystemClock::Get()->UnixNanos();
    options_.on_transfer(*finished);
  }
  Pump();
}

void LinkCore::OnGone(const grpc::Status& status) {
  std::shared_ptr<LinkStream> stream;
  bool was_connected = false;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stream.swap(stream_);
    ended_ = true;
    was_connected = connected_;
  }
  const std::string text = absl::StrCat("stream ended: ", status.error_message());
  // A refusal keeps its code. Later, whatever the reason was there, it is a broken link here.
  const bool refused = !was_connected && !status.ok();
  Fail(refused ? Refusal(status, text) : absl::UnavailableError(text));
}

LinkCore::Chunk LinkCore::TakeFrameLocked() {
  Outgoing& front = outgoing_.front();
  const Tensor& tensor = front.message.tensors[front.tensor];
  Chunk chunk;
  chunk.tensor = tensor;
  LinkFrame& frame = chunk.frame;
  frame.term = front.message.fence.term;
  frame.generation = front.message.fence.generation;
  frame.step = front.message.fence.step;
  frame.attempt = front.message.fence.attempt;
  frame.kind = front.message.kind;
  frame.micro_batch = static_cast<uint32_t>(front.message.micro_batch.value);
  frame.tensor_index = static_cast<uint32_t>(front.tensor);
  frame.tensor_count = static_cast<uint32_t>(front.message.tensors.size());
  frame.dtype = tensor.dtype();
  frame.shape = tensor.shape().extents();
  frame.offset = static_cast<uint64_t>(front.offset);
  frame.sent_unix_nanos = front.message.sent_unix_nanos;
  frame.data_bytes = static_cast<uint64_t>(
      std::min<int64_t>(options_.link.chunk_bytes, tensor.bytes() - front.offset));
  front.offset += static_cast<int64_t>(frame.data_bytes);
  if (front.offset == tensor.bytes()) {
    ++front.tensor;
    front.offset = 0;
  }
  if (front.tensor == front.message.tensors.size()) {
    if (options_.on_transfer) finishing_ = TransferOf(front.message);
    outgoing_.pop_front();
    front_started_ = false;
  }
  return chunk;
}

std::optional<LinkCore::Chunk> LinkCore::TakeChunkLocked() {
  if (hello_due_) {
    hello_due_ = false;
    LinkHello hello;
    hello.boundary = options_.boundary;
    hello.capacity = static_cast<uint32_t>(options_.link.capacity_messages);
    return Chunk{EncodeHello(hello), Tensor(), LinkFrame()};
  }
  if (!connected_) return std::nullopt;
  if (credit_due_ > 0) {
    return Chunk{EncodeCredit({std::exchange(credit_due_, 0)}), Tensor(), LinkFrame()};
  }
  if (outgoing_.empty()) return std::nullopt;
  if (!front_started_) {
    if (wire_credit_ == 0) return std::nullopt;
    --wire_credit_;
    front_started_ = true;
  }
  return TakeFrameLocked();
}

void LinkCore::Pump() {
  std::optional<Chunk> chunk;
  std::shared_ptr<LinkStream> stream;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (stream_ == nullptr || write_in_flight_ || reads_over_ || !closed_.ok()) return;
    chunk = TakeChunkLocked();
    if (!chunk.has_value()) return;
    write_in_flight_ = true;
    stream = stream_;
  }
  write_buffer_ = chunk->control.empty() ? FrameBuffer(chunk->tensor, std::move(chunk->frame))
                                         : ControlBuffer(chunk->control);
  stream->Write(&write_buffer_);
}

}  // namespace stagecoach
