#include "services/common/convert/fields/known_fields.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/unknown_field_set.h"

namespace stagecoach {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using google::protobuf::UnknownFieldSet;

absl::Status CheckAllKnown(const Message& message, const std::string& path,
                           const std::string& except) {
  const Reflection& reflection = *message.GetReflection();
  const UnknownFieldSet& unknown = reflection.GetUnknownFields(message);
  if (!unknown.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": has field ", unknown.field(0).number(),
                                                   ", which this version does not know"));
  }
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE || field->name() == except) continue;
    const std::string inner = absl::StrCat(path, ".", field->name());
    if (!field->is_repeated()) {
      RETURN_IF_ERROR(CheckAllKnown(reflection.GetMessage(message, field), inner));
      continue;
    }
    for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
      RETURN_IF_ERROR(CheckAllKnown(reflection.GetRepeatedMessage(message, field, i),
                                    absl::StrCat(inner, "[", i, "]")));
    }
  }
  return absl::OkStatus();
}

}  // namespace stagecoach
