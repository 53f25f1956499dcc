// Link messages as gRPC buffers, without a copy of any payload on either side.
// Ownership: a frame's buffer keeps the tensor's memory alive until gRPC releases the slice, which
//            may be after the write was reported done. ReceivedMessage keeps gRPC's received
//            slices.
// Errors:    as DecodeLinkMessage; INTERNAL if gRPC cannot read its own buffer.
#ifndef STAGECOACH_STAGE_LINK_GRPC_MESSAGES_FRAME_BUFFER_H_
#define STAGECOACH_STAGE_LINK_GRPC_MESSAGES_FRAME_BUFFER_H_

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "stage/link/grpc/messages/frame_codec.h"
#include "stage/tensor/tensor.h"

namespace stagecoach {

// An encoded hello, credit or repeat.
grpc::ByteBuffer ControlBuffer(const std::string& encoded);
// The frame, and frame.data_bytes of the tensor from frame.offset on.
grpc::ByteBuffer FrameBuffer(const Tensor& tensor, const LinkFrame& frame);
// CRC-32C of these bytes.
uint32_t DataChecksum(const Tensor& tensor, const LinkFrame& frame);

struct ReceivedMessage {
  LinkMessage message;
  std::vector<grpc::Slice> slices;
  std::vector<std::span<const std::byte>> pieces;  // of the slices
};
absl::StatusOr<ReceivedMessage> ReadBuffer(const grpc::ByteBuffer& buffer);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_LINK_GRPC_MESSAGES_FRAME_BUFFER_H_
