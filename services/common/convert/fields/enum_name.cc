#include "services/common/convert/fields/enum_name.h"

#include "absl/strings/ascii.h"

namespace stagecoach {

std::string ShortEnumName(const google::protobuf::EnumValueDescriptor& value) {
  // The enum's own name in capitals, words apart, begins every value: buf's lint rule.
  std::string prefix;
  for (const char c : value.type()->name()) {
    if (absl::ascii_isupper(c) && !prefix.empty()) prefix += '_';
    prefix += absl::ascii_toupper(c);
  }
  prefix += '_';
  const std::string& name = value.name();
  const bool has_prefix = name.compare(0, prefix.size(), prefix) == 0;
  return absl::AsciiStrToLower(has_prefix ? name.substr(prefix.size()) : name);
}

std::optional<int> EnumNumber(const google::protobuf::EnumDescriptor& type,
                              const std::string& short_name) {
  for (int i = 0; i < type.value_count(); ++i) {
    const google::protobuf::EnumValueDescriptor& value = *type.value(i);
    if (value.number() != 0 && ShortEnumName(value) == short_name) return value.number();
  }
  return std::nullopt;
}

}  // namespace stagecoach
