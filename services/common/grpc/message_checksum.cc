#include "services/common/grpc/message_checksum.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <span>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/files/hash.h"

namespace stagecoach {

uint32_t ChecksumOf(const google::protobuf::MessageLite& message) {
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);  // maps in one order
    message.SerializePartialToCodedStream(&coded);
  }
  return Crc32c(std::as_bytes(std::span(bytes)));
}

absl::Status ChecksumMissing(const google::protobuf::MessageLite& message) {
  return absl::UnavailableError(
      absl::StrCat(message.GetTypeName(),
                   ": has no checksum: it was damaged on its way, or comes from another version; "
                   "coordinator and stage servers have to be of one version"));
}

absl::Status ChecksumDiffers(const google::protobuf::MessageLite& message, uint32_t told,
                             uint32_t is) {
  return absl::UnavailableError(
      absl::StrFormat("%s: was damaged on its way: its checksum is %08x, it says %08x",
                      message.GetTypeName(), is, told));
}

}  // namespace stagecoach
