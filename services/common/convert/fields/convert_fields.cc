#include "services/common/convert/fields/convert_fields.h"

#include <optional>
#include <variant>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "services/common/convert/fields/enum_name.h"

namespace stagecoach {

using google::protobuf::Message;

const ProtoField* FieldNamed(const google::protobuf::Descriptor& message, std::string_view name) {
  const ProtoField* field = message.FindFieldByName(std::string(name));
  CHECK(field != nullptr) << message.full_name() << " has no field " << name;
  return field;
}

bool IsGiven(const Message& message, const ProtoField* field) {
  return !field->has_presence() || message.GetReflection()->HasField(message, field);
}

void WriteField(Message* message, const ProtoField* field, const std::string& text) {
  const ProtoReflection& reflection = *message->GetReflection();
  if (field->cpp_type() != ProtoField::CPPTYPE_ENUM) {
    return reflection.SetString(message, field, text);
  }
  if (text.empty()) return;
  int number = 0;
  const std::optional<int> known = EnumNumber(*field->enum_type(), text);
  CHECK(known.has_value() || absl::SimpleAtoi(text, &number))
      << field->enum_type()->full_name() << " has no value " << text;
  reflection.SetEnumValue(message, field, known.value_or(number));
}

bool ReadField(const Message& message, const ProtoField* field, std::string& text) {
  const ProtoReflection& reflection = *message.GetReflection();
  if (field->cpp_type() != ProtoField::CPPTYPE_ENUM) {
    text = reflection.GetString(message, field);
    return true;
  }
  const int number = reflection.GetEnumValue(message, field);
  if (number == 0) return true;
  const auto* const value = field->enum_type()->FindValueByNumber(number);
  text = value == nullptr ? absl::StrCat(number) : ShortEnumName(*value);
  return value != nullptr;
}

void SetFields(const Attributes& attributes, Message* message) {
  for (const Attributes::Entry& entry : attributes.entries()) {
    const ProtoField* field = FieldNamed(*message->GetDescriptor(), entry.name);
    std::visit([&](const auto& v) { WriteField(message, field, v); }, entry.value);
  }
}

Attributes FieldsOf(const Message& message, const Attributes& defaults) {
  Attributes fields;
  for (const Attributes::Entry& entry : defaults.entries()) {
    const ProtoField* field = FieldNamed(*message.GetDescriptor(), entry.name);
    AttributeValue value = entry.value;
    if (IsGiven(message, field)) {
      std::visit([&](auto& v) { ReadField(message, field, v); }, value);
    }
    fields.Set(entry.name, value);
  }
  return fields;
}

}  // namespace stagecoach
