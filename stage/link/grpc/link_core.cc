#include "stage/link/grpc/link_core.h"

#include <grpcpp/support/status.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/errors/status.h"
#include "base/threads/clock.h"
#include "stage/link/grpc/link_faults.h"
#include "stage/link/grpc/messages/frame_buffer.h"

namespace stagecoach {
namespace {

// More than an honest peer asks for, as it ends the link itself. What it takes for progress may
// come later than we count it, so the two do not agree to the round.
constexpr int kMostPeersRounds = 2 * ReadRepeats::kMostRounds;

}  // namespace

LinkCore::LinkCore(Options options)
    : options_(std::move(options)),
      assembler_(options_.boundary, !options_.upstream_end, options_.allocator,
                 options_.most_message_bytes),
      sent_(options_.link.chunk_bytes),
      peers_repeats_(kMostPeersRounds) {
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
    if (sent_.size() >= static_cast<size_t>(options_.link.capacity_messages)) return false;
    const auto bytes = static_cast<uint64_t>(PayloadBytes(message));
    if (message.sent_unix_nanos == 0) message.sent_unix_nanos = SystemClock::Get()->UnixNanos();
    sent_.Add(std::move(message));
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
    ++taken_;
    credit_due_ = true;
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
  result.inflight_messages = sent_.size();
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
  std::deque<TensorMessage> outgoing, incoming;  // tensors are freed outside the mutex
  std::shared_ptr<LinkStream> cancelled, ended;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!closed_.ok()) return;
    closed_ = reason;
    outgoing = sent_.Release();
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
      sent_.GiveRoom(peer_hello->capacity);
      options_.totals->Connected(options_.boundary.above);
    }
  }
  if (refused != nullptr) {
    refused->Cancel();
    refused->End(reason);
    return;
  }
  Pump();
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
  Fail(refused ? RefusedLinksFault(status, text) : absl::UnavailableError(text));
}

std::optional<LinkCore::Written> LinkCore::TakeWriteLocked() {
  if (hello_due_) {
    hello_due_ = false;
    LinkHello hello;
    hello.boundary = options_.boundary;
    hello.capacity = static_cast<uint32_t>(options_.link.capacity_messages);
    return EncodeHello(hello);
  }
  if (!connected_) return std::nullopt;
  // In front of a repeat: the peer that reads its answer first does not say its own again. In front
  // of frames: what a stage sent and its neighbour took is let go before the neighbour's answer is
  // here (plan/costs/link_memory.h).
  if (std::exchange(credit_due_, false)) return EncodeCredit({taken_, peers_round_});
  if (repeats_.TakeDue()) return EncodeRepeat({repeats_.round(), received_});
  std::optional<SentMessages::Chunk> chunk = sent_.TakeChunk();
  if (!chunk.has_value()) return std::nullopt;
  if (chunk->ends_message && options_.on_transfer) {
    finishing_ = TransferOf(sent_.message(chunk->message));
  }
  return *std::move(chunk);
}

// Called by whoever has the write in flight: a checksum takes its time, and no lock.
grpc::ByteBuffer LinkCore::BufferOf(Written written) {
  if (const auto* const control = std::get_if<std::string>(&written))
    return ControlBuffer(*control);
  auto& chunk = std::get<SentMessages::Chunk>(written);
  if (!chunk.has_checksum) {
    chunk.frame.crc32c = DataChecksum(chunk.tensor, chunk.frame);
    std::lock_guard<std::mutex> lock(mutex_);
    sent_.KeepChecksum(chunk, chunk.frame.crc32c);
  }
  return FrameBuffer(chunk.tensor, chunk.frame);
}

void LinkCore::Pump() {
  std::optional<Written> written;
  std::shared_ptr<LinkStream> stream;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (stream_ == nullptr || write_in_flight_ || reads_over_ || !closed_.ok()) return;
    written = TakeWriteLocked();
    if (!written.has_value()) return;
    write_in_flight_ = true;
    stream = stream_;
  }
  write_buffer_ = BufferOf(*std::move(written));
  stream->Write(&write_buffer_);
}

}  // namespace stagecoach
