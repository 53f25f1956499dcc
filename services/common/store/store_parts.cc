#include "services/common/store/store_parts.h"

#include <span>
#include <string>

#include "base/files/hash.h"

namespace stagecoach {

uint32_t CrcOf(const v1::WriteObjectRequest& part) {
  v1::WriteObjectRequest head;
  head.set_name(part.name());
  head.set_grant(part.grant());
  head.set_write_offset(part.write_offset());
  head.set_finish_write(part.finish_write());
  const std::string bytes = head.SerializeAsString();
  return Crc32c(std::as_bytes(std::span(part.data())), Crc32c(std::as_bytes(std::span(bytes))));
}

uint32_t CrcOf(const v1::ReadObjectResponse& part) {
  return Crc32c(std::as_bytes(std::span(part.data())));
}

}  // namespace stagecoach
