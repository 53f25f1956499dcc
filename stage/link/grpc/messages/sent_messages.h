// SentMessages: the messages that one end gave to its link, cut into chunks. It keeps a message
// until the peer's executor has taken it. So a message that arrived damaged can be sent again.
// Messages are counted from 0 since the stream began. The peer has taken the first `taken`; `next`
// is the one being written.
// Ownership: owns the messages; a chunk shares its tensor's memory.
// Threads:   thread-compatible; LinkCore's mutex guards it.
// Units:     messages and bytes.
// Errors:    INVALID_ARGUMENT for a credit or a repeat that contradicts earlier messages.
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
    uint64_t message = 0;       // number of its message
    bool has_checksum = false;  // frame.crc32c is that of its first write
    bool ends_message = false;  // for the first time
  };

  explicit SentMessages(int64_t chunk_bytes) : chunk_bytes_(chunk_bytes) {}

  void Add(TensorMessage message) { kept_.push_back({.message = std::move(message)}); }
  size_t size() const { return kept_.size(); }  // not taken by the peer yet
  uint64_t taken() const { return taken_; }
  const TensorMessage& message(uint64_t number) const { return At(number).message; }

  // From the peer's hello: at most `messages` may be begun and not taken.
  void GiveRoom(uint64_t messages) { room_ = messages; }
  // For a credit. Returns the messages that are taken: the caller destroys them, under no lock.
  absl::StatusOr<std::vector<TensorMessage>> SetTaken(uint64_t taken);
  // For a repeat: sends `next` again from its first chunk, and all later messages.
  absl::Status GoBackTo(uint64_t next);

  // The next chunk to write; none: everything is written, or the peer has no room.
  std::optional<Chunk> TakeChunk();
  // Keeps the checksum of a chunk that had none. A repeat of the chunk has the same one. So if the
  // tensor was overwritten since, the peer's check fails.
  void KeepChecksum(const Chunk& chunk, uint32_t crc32c);

  // Returns all messages when the link closes. Afterwards it is empty, and any credit is an error.
  [[nodiscard]] std::deque<TensorMessage> Release();

 private:
  struct Kept {
    TensorMessage message;
    std::vector<uint32_t> checksums;  // of its chunks, in order
  };
  const Kept& At(uint64_t number) const { return kept_[number - taken_]; }
  void BeginMessage();

  const int64_t chunk_bytes_;
  std::deque<Kept> kept_;  // messages from number taken_ on
  uint64_t room_ = 0;
  uint64_t taken_ = 0;
  uint64_t next_ = 0;   // message to write; a repeat sets it back
  uint64_t asked_ = 0;  // `next` of the newest repeat
  uint64_t ended_ = 0;  // messages written whole at least once
  bool begun_ = false;  // next_ is begun
  size_t tensor_ = 0;   // present tensor of next_
  int64_t offset_ = 0;  // in that tensor
  size_t chunk_ = 0;    // present chunk of next_
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_LINK_GRPC_MESSAGES_SENT_MESSAGES_H_
