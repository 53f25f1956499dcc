// SentMessages: what one end gave to its link, cut into chunks, kept until the peer's executor has
// taken it. So a message that arrived damaged can be sent again.
// Messages are counted from 0 since the stream began. The peer has taken the first `taken`; `next`
// is the one at hand.
// Ownership: owns the messages; a chunk shares its tensor's memory.
// Threads:   thread-compatible; LinkCore's mutex guards it.
// Units:     messages and bytes.
// Errors:    INVALID_ARGUMENT for a credit or a repeat that contradicts what was sent or said
//            before.
#ifndef STAGECOACH_STAGE_LINK_GRPC_MESSAGES_SENT_MESSAGES_H_
#define STAGECOACH_STAGE_LINK_GRPC_MESSAGES_SENT_MESSAGES_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "stage/link/grpc/messages/frame_codec.h"
#include "stage/link/link.h"
#include "stage/tensor/tensor.h"

namespace stagecoach {

class SentMessages {
 public:
  struct Chunk {
    Tensor tensor;
    LinkFrame frame;
    uint64_t message = 0;       // of which it is
    bool has_checksum = false;  // frame.crc32c is that of its first write
    bool ends_message = false;  // and it does so for the first time
  };

  explicit SentMessages(int64_t chunk_bytes) : chunk_bytes_(chunk_bytes) {}

  void Add(TensorMessage message) { kept_.push_back({.message = std::move(message)}); }
  size_t size() const { return kept_.size(); }  // not taken by the peer yet
  uint64_t taken() const { return taken_; }
  const TensorMessage& message(uint64_t number) const { return At(number).message; }

  // The peer's hello: so many messages may be begun and not taken.
  void GiveRoom(uint64_t messages) { room_ = messages; }
  // A credit. What it lets go is the caller's to destroy, under no lock.
  absl::StatusOr<std::vector<TensorMessage>> SetTaken(uint64_t taken);
  // A repeat: `next` is sent again from its first chunk, and what follows.
  absl::Status GoBackTo(uint64_t next);

  // The next chunk to write; none: everything is written, or the peer has no room.
  std::optional<Chunk> TakeChunk();
  // Of a chunk that had none. Written again it has the same, so if the tensor was overwritten
  // since, the peer's check fails.
  void KeepChecksum(const Chunk& chunk, uint32_t crc32c);

  // All of them, when the link closes; then it is empty, and no credit fits it any more.
  [[nodiscard]] std::deque<TensorMessage> Release();

 private:
  struct Kept {
    TensorMessage message;
    std::vector<uint32_t> checksums;  // of its chunks, in order
  };
  const Kept& At(uint64_t number) const { return kept_[number - taken_]; }
  void BeginMessage();

  const int64_t chunk_bytes_;
  std::deque<Kept> kept_;  // message taken_ and those behind it
  uint64_t room_ = 0;
  uint64_t taken_ = 0;
  uint64_t next_ = 0;   // to write; a repeat sets it back
  uint64_t asked_ = 0;  // by the newest repeat
  uint64_t ended_ = 0;  // those in front of it were written whole once
  bool begun_ = false;  // next_ is
  size_t tensor_ = 0;   // at hand, of next_
  int64_t offset_ = 0;  // in it
  size_t chunk_ = 0;    // of next_
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_LINK_GRPC_MESSAGES_SENT_MESSAGES_H_
