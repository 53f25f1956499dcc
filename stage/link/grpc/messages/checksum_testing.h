// For tests that act as another protobuf peer: the checksum of a message of link.proto.
#ifndef STAGECOACH_STAGE_LINK_GRPC_MESSAGES_CHECKSUM_TESTING_H_
#define STAGECOACH_STAGE_LINK_GRPC_MESSAGES_CHECKSUM_TESTING_H_

#include <google/protobuf/message_lite.h>

#include <cstdint>
#include <span>
#include <string>

#include "base/files/hash.h"

namespace stagecoach {

// The checksum of a message whose checksum and data are not set yet.
inline uint32_t ChecksumOf(const google::protobuf::MessageLite& message) {
  const std::string text = message.SerializeAsString();
  return Crc32c(std::as_bytes(std::span<const char>(text.data(), text.size())));
}

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_LINK_GRPC_MESSAGES_CHECKSUM_TESTING_H_
