// LinkCore: what comes from the peer.
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "base/threads/clock.h"
#include "stage/link/grpc/link_core.h"
#include "stage/link/grpc/link_faults.h"
#include "stage/link/grpc/messages/frame_buffer.h"

namespace stagecoach {

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
  sent_.GiveRoom(hello.capacity);
  options_.totals->Connected(options_.boundary.above);
  return absl::OkStatus();
}

absl::Status LinkCore::Handle(const LinkCredit& credit) {
  std::vector<TensorMessage> let_go;  // behind the lock
  std::lock_guard<std::mutex> lock(mutex_);
  if (!closed_.ok()) return absl::OkStatus();  // since it was read
  RETURN_IF_ERROR(repeats_.OnAnswer(credit.round));
  ASSIGN_OR_RETURN(let_go, sent_.SetTaken(credit.taken));
  return absl::OkStatus();
}

absl::Status LinkCore::Handle(const LinkRepeat& repeat) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!closed_.ok()) return absl::OkStatus();
  if (repeat.round < peers_round_) {
    return absl::InvalidArgumentError(
        absl::StrCat("peer says repeat ", repeat.round, " behind ", peers_round_));
  }
  credit_due_ = true;
  // Said again, as it may have been lost: it was not, and frames of this round may be on their way.
  if (repeat.round == peers_round_) return absl::OkStatus();
  if (!peers_repeats_.Allow(repeat.next + sent_.taken() + taken_)) {
    return absl::InvalidArgumentError("peer asks for the same messages again and again");
  }
  RETURN_IF_ERROR(sent_.GoBackTo(repeat.next));
  peers_round_ = repeat.round;
  repeats_.SayAgain();
  return absl::OkStatus();
}

LinkTransfer LinkCore::TransferOf(const TensorMessage& message) const {
  LinkTransfer transfer;
  transfer.sent = FlowsDown(message.kind) == options_.upstream_end;
  transfer.upstream_peer = !options_.upstream_end;
  transfer.above = options_.boundary.above;
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
  ++received_;
  if (closed_.ok()) incoming_.push_back(std::move(message));
}

absl::Status LinkCore::Handle(const LinkFrame& frame, Pieces pieces) {
  bool is_ignored = false, is_stall = false;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    is_ignored = repeats_.ignores_frames();
    if (is_ignored) {
      // No more than this can be on its way from a peer that answers.
      const uint64_t bytes = repeats_.Ignore(frame.data_bytes);
      is_stall = bytes / static_cast<uint64_t>(options_.link.capacity_messages) >
                 static_cast<uint64_t>(options_.most_message_bytes);
    }
    // One more than we gave room for may not even begin: memory is bounded by credits.
    if (!is_ignored && incoming_.size() >= static_cast<size_t>(options_.link.capacity_messages)) {
      return absl::InvalidArgumentError(absl::StrCat("peer sent more than the ",
                                                     options_.link.capacity_messages,
                                                     " messages it had credit for"));
    }
  }
  MessageAssembler::Result result;
  if (!is_ignored) {
    ASSIGN_OR_RETURN(result, assembler_.Add(frame, pieces));
  }
  // A large message on a slow network is no stall.
  if (options_.progress != nullptr && !result.stale && !is_stall) options_.progress->Tick();
  if (result.message.has_value()) Deliver(*std::move(result.message));
  if (result.stale) {
    std::lock_guard<std::mutex> lock(mutex_);
    ++statistics_.stale_frames;
    if (result.stale_message_ended) {
      ++received_;
      ++taken_;
      credit_due_ = true;
    }
  }
  return absl::OkStatus();
}

absl::Status LinkCore::HandleBuffer(const grpc::ByteBuffer& buffer) {
  ASSIGN_OR_RETURN(const ReceivedMessage received, ReadBuffer(buffer));
  const LinkMessage& message = received.message;
  if (const auto* hello = std::get_if<LinkHello>(&message)) return Handle(*hello);
  if (!connected()) return absl::InvalidArgumentError("a message before the hello");
  if (const auto* credit = std::get_if<LinkCredit>(&message)) return Handle(*credit);
  if (const auto* repeat = std::get_if<LinkRepeat>(&message)) return Handle(*repeat);
  return Handle(std::get<LinkFrame>(message), received.pieces);
}

// Whatever it was, a frame, a credit or a repeat: the answer makes up for each of them.
absl::Status LinkCore::AskAgain(const absl::Status& damage, size_t bytes) {
  assembler_.Drop();
  std::lock_guard<std::mutex> lock(mutex_);
  if (!connected_) return damage;
  const uint32_t round = repeats_.round();
  if (!repeats_.OnDamage(bytes, received_ + sent_.taken())) {
    return absl::DataLossError(absl::StrCat(damage.message(), "; asked for again ",
                                            ReadRepeats::kMostRounds,
                                            " times, and nothing came whole between"));
  }
  if (repeats_.round() != round) ++options_.totals->repeats;
  return absl::OkStatus();
}

bool LinkCore::OnRead(const grpc::ByteBuffer& buffer) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!closed_.ok()) return false;
    ++reading_;
  }
  absl::Status handled = HandleBuffer(buffer);
  if (absl::IsDataLoss(handled)) handled = AskAgain(handled, buffer.Length());
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

}  // namespace stagecoach
