// CheckAllKnown: has a message only fields that this version knows? Protobuf keeps others aside
// without a word, which is right for what is shown and wrong for what is built.
// Threads: any.
#ifndef STAGECOACH_SERVICES_COMMON_CONVERT_FIELDS_KNOWN_FIELDS_H_
#define STAGECOACH_SERVICES_COMMON_CONVERT_FIELDS_KNOWN_FIELDS_H_

#include <string>

#include "absl/status/status.h"
#include "google/protobuf/message.h"

namespace stagecoach {

// INVALID_ARGUMENT with the path of the first message that has one, from `path` on, and the field's
// number. The messages inside are looked at too, but for the field `except` of this one.
absl::Status CheckAllKnown(const google::protobuf::Message& message, const std::string& path,
                           const std::string& except = "");

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_CONVERT_FIELDS_KNOWN_FIELDS_H_
