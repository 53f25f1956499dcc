// Names of enums' values as users write them.
// Threads: pure functions.
#ifndef STAGECOACH_SERVICES_COMMON_CONVERT_FIELDS_ENUM_NAME_H_
#define STAGECOACH_SERVICES_COMMON_CONVERT_FIELDS_ENUM_NAME_H_

#include <optional>
#include <string>

#include "google/protobuf/descriptor.h"

namespace stagecoach {

// "SCHEDULE_KIND_GPIPE" of enum ScheduleKind -> "gpipe".
std::string ShortEnumName(const google::protobuf::EnumValueDescriptor& value);

// The inverse; nullopt if there is no such value, or if it is that of 0, which means "left out".
std::optional<int> EnumNumber(const google::protobuf::EnumDescriptor& type,
                              const std::string& short_name);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_CONVERT_FIELDS_ENUM_NAME_H_
