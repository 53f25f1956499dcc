// CRC-32C of the store's parts. The checksum of commands (message_checksum.h) writes the whole message
// out once more, which costs as much as sending it.
#ifndef STAGECOACH_SERVICES_COMMON_STORE_STORE_PARTS_H_
#define STAGECOACH_SERVICES_COMMON_STORE_STORE_PARTS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "stagecoach/v1/store.pb.h"

namespace stagecoach {

uint32_t CrcOf(const v1::WriteObjectRequest& part);
uint32_t CrcOf(const v1::ReadObjectResponse& part);

// UNAVAILABLE: the part was changed on its way.
template <typename Part>
absl::Status CheckCrc(const Part& part) {
  if (part.crc32c() == CrcOf(part)) return absl::OkStatus();
  return absl::UnavailableError("a part of an object was changed on its way");
}

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_STORE_STORE_PARTS_H_
