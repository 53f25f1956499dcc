#include "stage/link/grpc/messages/frame_buffer.h"

#include <array>
#include <memory>
#include <utility>

#include "base/errors/status.h"
#include "base/files/hash.h"

namespace stagecoach {
namespace {

grpc::Slice Copied(const std::string& bytes) { return grpc::Slice(bytes.data(), bytes.size()); }

// The slice keeps the tensor's buffer alive. Only its destroy callback lets go: in some writes gRPC
// still holds the slice when the write is done.
grpc::Slice Aliasing(const Tensor& tensor, uint64_t offset, uint64_t bytes) {
  return grpc::Slice(
      tensor.raw() + offset, bytes,
      [](void* buffer) { delete static_cast<std::shared_ptr<Buffer>*>(buffer); },
      new std::shared_ptr<Buffer>(tensor.buffer()));
}

}  // namespace

grpc::ByteBuffer ControlBuffer(const std::string& encoded) {
  const grpc::Slice slice = Copied(encoded);
  return grpc::ByteBuffer(&slice, 1);
}

uint32_t DataChecksum(const Tensor& tensor, const LinkFrame& frame) {
  return Crc32c(tensor.span().subspan(frame.offset, frame.data_bytes));
}

grpc::ByteBuffer FrameBuffer(const Tensor& tensor, const LinkFrame& frame) {
  const std::string head = EncodeFrameHead(frame);
  if (frame.data_bytes == 0) return ControlBuffer(head);
  const std::array<grpc::Slice, 2> slices = {Copied(head),
                                             Aliasing(tensor, frame.offset, frame.data_bytes)};
  return grpc::ByteBuffer(slices.data(), slices.size());
}

absl::StatusOr<ReceivedMessage> ReadBuffer(const grpc::ByteBuffer& buffer) {
  ReceivedMessage received;
  grpc::Slice single;
  if (buffer.TrySingleSlice(&single).ok()) {
    received.slices.push_back(std::move(single));
  } else if (!buffer.Dump(&received.slices).ok()) {
    return absl::InternalError("gRPC could not read a received message");
  }
  received.pieces.reserve(received.slices.size());
  for (const grpc::Slice& slice : received.slices) {
    received.pieces.push_back({reinterpret_cast<const std::byte*>(slice.begin()), slice.size()});
  }
  ASSIGN_OR_RETURN(received.message, DecodeLinkMessage(received.pieces));
  return received;
}

}  // namespace stagecoach
