// CheckAllKnown: whether this version knows all fields of a message. Protobuf silently keeps others
// aside, which is right for values to show and wrong for values to build from.
// Threads: any.
#ifndef STAGECOACH_SERVICES_COMMON_CONVERT_FIELDS_KNOWN_FIELDS_H_
#define STAGECOACH_SERVICES_COMMON_CONVERT_FIELDS_KNOWN_FIELDS_H_

#include <string>

#include "absl/status/status.h"
#include "google/protobuf/message.h"

namespace stagecoach {

// INVALID_ARGUMENT with the path of the first message with an unknown field, from `path` on, and
// the field's number. It checks messages inside too, except the field `except` of this one.
absl::Status CheckAllKnown(const google::protobuf::Message& message, const std::string& path,
                           const std::string& except = "");

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_CONVERT_FIELDS_KNOWN_FIELDS_H_
