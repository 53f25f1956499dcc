// Commands, reports and heartbeats carry a CRC-32C of themselves: TCP's sum misses one damaged
// packet in 65,536, and without TLS a flipped bit in a learning rate would be believed. If the sum
// does not fit, the answer is UNAVAILABLE and the sender retries. Statuses and metadata have none.
#ifndef STAGECOACH_SERVICES_COMMON_GRPC_MESSAGE_CHECKSUM_H_
#define STAGECOACH_SERVICES_COMMON_GRPC_MESSAGE_CHECKSUM_H_

#include <google/protobuf/message_lite.h>

#include <cstdint>

#include "absl/status/status.h"

namespace stagecoach {

// Messages with a field `optional fixed32 checksum`.
template <typename Message>
concept HasChecksum = requires(Message& message) {
  message.set_checksum(uint32_t{0});
  message.clear_checksum();
};

// Checksum of a message without that field, as both versions of one release write it.
uint32_t ChecksumOf(const google::protobuf::MessageLite& message);
absl::Status ChecksumMissing(const google::protobuf::MessageLite& message);
absl::Status ChecksumDiffers(const google::protobuf::MessageLite& message, uint32_t told,
                             uint32_t is);

// Call it last before the message is sent.
template <typename Message>
void SetChecksum(Message* message) {
  if constexpr (HasChecksum<Message>) {
    message->clear_checksum();
    message->set_checksum(ChecksumOf(*message));
  }
}
template <HasChecksum Message>
Message WithChecksum(Message message) {
  SetChecksum(&message);
  return message;
}

// Call it first after the message came.
template <typename Message>
absl::Status CheckChecksum(Message* message) {
  if constexpr (HasChecksum<Message>) {
    if (!message->has_checksum()) return ChecksumMissing(*message);
    const uint32_t told = message->checksum();
    message->clear_checksum();
    const uint32_t is = ChecksumOf(*message);
    message->set_checksum(told);
    if (told != is) return ChecksumDiffers(*message, told, is);
  }
  return absl::OkStatus();
}

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_GRPC_MESSAGE_CHECKSUM_H_
