#include "services/common/convert/fields/message_fields.h"

#include "absl/strings/str_cat.h"

namespace stagecoach {

void MessageVisitor::Convert(const ProtoField* field, std::string& text) {
  if (to_ != nullptr) return WriteField(to_, field, text);
  if (ReadField(from_, field, text)) return;
  status_.Update(absl::InvalidArgumentError(
      absl::StrCat(path_, field->name(), "=", text, ": this version does not know that value")));
}

MessageVisitor MessageVisitor::VisitorOf(const ProtoField* field, int index) {
  const ProtoReflection& reflection = *from_.GetReflection();
  if (to_ != nullptr) {
    return MessageVisitor(field->is_repeated() ? reflection.AddMessage(to_, field)
                                               : reflection.MutableMessage(to_, field));
  }
  return MessageVisitor(field->is_repeated() ? reflection.GetRepeatedMessage(from_, field, index)
                                             : reflection.GetMessage(from_, field),
                        absl::StrCat(path_, field->name(), "."));
}

}  // namespace stagecoach
