// LinkCore: one end of a boundary, on either side of the gRPC stream: queues, credits, repeats and
// the reason it closed. The streams (client_stream.h, server_stream.h) only carry bytes.
// link_core.cc sends, writes and closes; link_core_reads.cc reads.
// Ownership: shared by the Link handed out, its stream and the connector; OnGone releases the
//            stream. Once Detach has returned, the allocator is not used any more.
// Threads:   thread-safe. One write is outstanding at a time: the thread that sets
//            write_in_flight_ starts it, and only OnWriteDone clears it. Nothing is called under
//            the mutex.
// Errors:    status() keeps the first reason. A broken stream is UNAVAILABLE, naming boundary and
//            peer. It asks again for damaged messages (read_repeats.h); if that does not help, it
//            closes with DATA_LOSS.
#ifndef STAGECOACH_STAGE_LINK_GRPC_LINK_CORE_H_
#define STAGECOACH_STAGE_LINK_GRPC_LINK_CORE_H_

#include <grpcpp/support/byte_buffer.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <variant>

#include "base/threads/progress.h"
#include "stage/link/grpc/messages/frame_codec.h"
#include "stage/link/grpc/messages/message_assembler.h"
#include "stage/link/grpc/messages/read_repeats.h"
#include "stage/link/grpc/messages/sent_messages.h"
#include "stage/link/link.h"

namespace stagecoach {

// Totals of the process with one neighbour, over all links so far.
struct LinkTotals {
  std::atomic<uint64_t> sent_bytes{0}, received_bytes{0};
  std::atomic<uint64_t> reconnects{0};  // connections of an edge behind its first one
  std::atomic<uint64_t> repeats{0};  // that we asked for after damage
  std::atomic<uint64_t> edges{0};    // that were ever connected: bit n is of edges n modulo 64

  void Connected(CellId above) {
    const uint64_t bit = uint64_t{1} << (above.value % 64);
    if ((edges.fetch_or(bit) & bit) != 0) ++reconnects;
  }
};

// One gRPC stream as its core sees it.
class LinkStream {
 public:
  virtual ~LinkStream() = default;
  virtual void Write(const grpc::ByteBuffer* buffer) = 0;  // alive until OnWriteDone
  // Ends the stream, once, with no write outstanding. Only a server can tell its peer the reason.
  virtual void End(const absl::Status& reason) = 0;
  // Makes an outstanding write fail soon. A client's stream ends only by this.
  virtual void Cancel() = 0;
  virtual bool is_client() const = 0;
};

class LinkCore : public std::enable_shared_from_this<LinkCore> {
 public:
  struct Options {
    BoundaryId boundary;
    std::string peer;           // for error texts: an address, or "stage 0"
    bool upstream_end = false;  // sends activations
    LinkOptions link;
    Allocator* allocator = nullptr;
    int64_t most_message_bytes = kAnyMessageBytes;  // of an arriving message
    LinkTotals* totals = nullptr;
    LinkObserver on_transfer;             // may be empty
    ProgressCounter* progress = nullptr;  // ticks with every chunk that arrives; may be null
  };
  explicit LinkCore(Options options);

  // Link's functions.
  bool TrySend(TensorMessage&& message);
  std::optional<TensorMessage> TryReceive();
  absl::Status status() const;
  void Close(const absl::Status& reason);
  void SetReadyCallback(std::function<void()> callback);
  LinkStatistics statistics() const;
  void Detach();  // waits until no reaction uses the allocator; close first

  // Functions for the stream. peer_hello: a server has read it already.
  void Attach(std::shared_ptr<LinkStream> stream, std::optional<LinkHello> peer_hello);
  [[nodiscard]] bool OnRead(const grpc::ByteBuffer& buffer);  // false: read no further
  void OnWriteDone(bool ok);
  void OnReadFailed();                      // no more reads; a client's status is still to come
  void OnGone(const grpc::Status& status);  // the stream has ended

  bool connected() const;
  const Options& options() const { return options_; }

 private:
  // The content of one write: an encoded control message or a piece of a tensor.
  using Written = std::variant<std::string, SentMessages::Chunk>;

  absl::Status Handle(const LinkHello& hello);
  absl::Status Handle(const LinkCredit& credit);
  absl::Status Handle(const LinkRepeat& repeat);
  absl::Status Handle(const LinkFrame& frame, Pieces pieces);
  absl::Status HandleBuffer(const grpc::ByteBuffer& buffer);
  absl::Status AskAgain(const absl::Status& damage, size_t bytes);
  void Deliver(TensorMessage message);
  LinkTransfer TransferOf(const TensorMessage& message) const;

  void Fail(const absl::Status& reason);  // Close, with the boundary's name
  void CloseWith(const absl::Status& reason);
  void Pump();  // starts the next write if there is one
  std::optional<Written> TakeWriteLocked();
  grpc::ByteBuffer BufferOf(Written written);
  std::shared_ptr<LinkStream> TakeEndLocked();
  void Notify();
  std::string Name() const;

  const Options options_;
  MessageAssembler assembler_;     // read reactions only
  grpc::ByteBuffer write_buffer_;  // for the thread that has set write_in_flight_

  mutable std::mutex mutex_;  // guards the members below
  std::condition_variable idle_;
  int reading_ = 0;      // reactions at work on a received message
  absl::Status closed_;  // ok while open
  bool reads_over_ = false;
  std::shared_ptr<LinkStream> stream_;
  bool ended_ = false;  // End was called on the stream
  bool write_in_flight_ = false;
  bool hello_due_ = false;
  bool connected_ = false;  // the peer's hello is here
  SentMessages sent_;
  std::optional<LinkTransfer> finishing_;  // its last byte is in the present write
  uint64_t received_ = 0, taken_ = 0;      // whole messages received; taken by our executor
  bool credit_due_ = false;                // the peer does not know taken_, or waits for an answer
  std::deque<TensorMessage> incoming_;
  ReadRepeats repeats_;       // repeats that we ask for
  uint32_t peers_round_ = 0;  // of the peer's newest repeat
  RepeatLimit peers_repeats_;
  std::shared_ptr<const std::function<void()>> callback_;
  LinkStatistics statistics_;
};

// The Link over a core, for an executor. Its destructor closes the core.
std::unique_ptr<Link> LinkOver(std::shared_ptr<LinkCore> core);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_LINK_GRPC_LINK_CORE_H_
