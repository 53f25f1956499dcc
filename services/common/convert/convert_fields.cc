#include "services/common/convert/convert_fields.h"

#include <algorithm>
#include <optional>
#include <variant>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "google/protobuf/descriptor.h"
#include "services/common/convert/enum_name.h"

namespace stagecoach {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// How a type of attribute is read from and written to a field: an overload each of Takes, Write and Read.
bool Takes(const FieldDescriptor& field, bool) {
  return !field.is_repeated() && field.cpp_type() == FieldDescriptor::CPPTYPE_BOOL;
}
bool Takes(const FieldDescriptor& field, int64_t) {
  return !field.is_repeated() && field.cpp_type() == FieldDescriptor::CPPTYPE_INT64;
}
bool Takes(const FieldDescriptor& field, double) {
  return !field.is_repeated() && field.cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE;
}
bool Takes(const FieldDescriptor& field, const std::string&) {
  return !field.is_repeated() && (field.type() == FieldDescriptor::TYPE_STRING ||
                                  field.type() == FieldDescriptor::TYPE_ENUM);
}
bool Takes(const FieldDescriptor& field, const std::vector<int64_t>&) {
  return field.is_repeated() && field.cpp_type() == FieldDescriptor::CPPTYPE_INT64;
}
bool Takes(const FieldDescriptor& field, const std::vector<double>&) {
  return field.is_repeated() && field.cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE;
}

const char* TypeName(bool) { return "bool"; }
const char* TypeName(int64_t) { return "int64"; }
const char* TypeName(double) { return "double"; }
const char* TypeName(const std::string&) { return "string or a choice"; }
const char* TypeName(const std::vector<int64_t>&) { return "repeated int64"; }
const char* TypeName(const std::vector<double>&) { return "repeated double"; }

void Write(const Reflection& reflection, Message* message, const FieldDescriptor* field, bool v) {
  reflection.SetBool(message, field, v);
}
void Write(const Reflection& reflection, Message* message, const FieldDescriptor* field,
           int64_t v) {
  reflection.SetInt64(message, field, v);
}
void Write(const Reflection& reflection, Message* message, const FieldDescriptor* field, double v) {
  reflection.SetDouble(message, field, v);
}
void Write(const Reflection& reflection, Message* message, const FieldDescriptor* field,
           const std::string& v) {
  if (field->cpp_type() != FieldDescriptor::CPPTYPE_ENUM) {
    reflection.SetString(message, field, v);
    return;
  }
  // A number is one that this version did not know when it read it: it is handed on as it came.
  int number = 0;
  const std::optional<int> known = EnumNumber(*field->enum_type(), v);
  CHECK(known.has_value() || absl::SimpleAtoi(v, &number))
      << field->enum_type()->full_name() << " has no value " << v;
  reflection.SetEnumValue(message, field, known.value_or(number));
}
void Write(const Reflection& reflection, Message* message, const FieldDescriptor* field,
           const std::vector<int64_t>& v) {
  reflection.ClearField(message, field);
  for (const int64_t count : v) reflection.AddInt64(message, field, count);
}
void Write(const Reflection& reflection, Message* message, const FieldDescriptor* field,
           const std::vector<double>& v) {
  reflection.ClearField(message, field);
  for (const double number : v) reflection.AddDouble(message, field, number);
}

void Read(const Reflection& reflection, const Message& message, const FieldDescriptor* field,
          bool& v) {
  v = reflection.GetBool(message, field);
}
void Read(const Reflection& reflection, const Message& message, const FieldDescriptor* field,
          int64_t& v) {
  v = reflection.GetInt64(message, field);
}
void Read(const Reflection& reflection, const Message& message, const FieldDescriptor* field,
          double& v) {
  v = reflection.GetDouble(message, field);
}
void Read(const Reflection& reflection, const Message& message, const FieldDescriptor* field,
          std::string& v) {
  if (field->cpp_type() != FieldDescriptor::CPPTYPE_ENUM) {
    v = reflection.GetString(message, field);
    return;
  }
  const int number = reflection.GetEnumValue(message, field);
  if (number == 0) return;  // unspecified: the default stays
  const auto* const value = field->enum_type()->FindValueByNumber(number);
  v = value == nullptr ? absl::StrCat(number) : ShortEnumName(*value);
}
void Read(const Reflection& reflection, const Message& message, const FieldDescriptor* field,
          std::vector<int64_t>& v) {
  v.clear();
  const int count = reflection.FieldSize(message, field);
  for (int i = 0; i < count; ++i) v.push_back(reflection.GetRepeatedInt64(message, field, i));
}
void Read(const Reflection& reflection, const Message& message, const FieldDescriptor* field,
          std::vector<double>& v) {
  v.clear();
  const int count = reflection.FieldSize(message, field);
  for (int i = 0; i < count; ++i) v.push_back(reflection.GetRepeatedDouble(message, field, i));
}

// May a field that was left out stand for this default? One of a choice does for any that it has.
bool IsDefault(const FieldDescriptor& field, const std::string& v) {
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_ENUM) {
    return EnumNumber(*field.enum_type(), v).has_value();
  }
  return v.empty() || field.has_presence();
}
template <typename T>
bool IsDefault(const FieldDescriptor& field, const T& v) {
  return v == T{} || field.has_presence();
}

// What a field would have to be for its default.
std::string Wanted(const FieldDescriptor& field, const AttributeValue& value) {
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_ENUM) {
    return absl::StrCat(" has no value ", std::get<std::string>(value), ", which is the default");
  }
  if (field.is_repeated()) return " must be empty by default: a list is never optional";
  return " must be optional: its default is not 0";
}

std::string TypeOf(const FieldDescriptor& field) {
  return absl::StrCat(field.is_repeated() ? "repeated " : "", field.type_name());
}

const FieldDescriptor* FieldNamed(const Descriptor& message, const std::string& name) {
  const FieldDescriptor* field = message.FindFieldByName(name);
  CHECK(field != nullptr) << message.full_name() << " has no field " << name;
  return field;
}

// Of one attribute; nothing if it has its field.
std::string ProblemOf(const Descriptor& message, const Attributes::Entry& entry) {
  const std::string name = absl::StrCat(message.full_name(), ".", entry.name);
  const FieldDescriptor* field = message.FindFieldByName(entry.name);
  if (field == nullptr) return absl::StrCat(name, " is missing");
  if (!std::visit([&](const auto& v) { return Takes(*field, v); }, entry.value)) {
    return absl::StrCat(name, " is ", TypeOf(*field), "; the struct has ",
                        std::visit([](const auto& v) { return TypeName(v); }, entry.value));
  }
  if (!std::visit([&](const auto& v) { return IsDefault(*field, v); }, entry.value)) {
    return absl::StrCat(name, Wanted(*field, entry.value));
  }
  return "";
}

}  // namespace

void SetFields(const Attributes& attributes, Message* message) {
  for (const Attributes::Entry& entry : attributes.entries()) {
    const FieldDescriptor* field = FieldNamed(*message->GetDescriptor(), entry.name);
    std::visit([&](const auto& v) { Write(*message->GetReflection(), message, field, v); },
               entry.value);
  }
}

Attributes FieldsOf(const Message& message, const Attributes& defaults) {
  const Reflection& reflection = *message.GetReflection();
  Attributes fields;
  for (const Attributes::Entry& entry : defaults.entries()) {
    const FieldDescriptor* field = FieldNamed(*message.GetDescriptor(), entry.name);
    AttributeValue value = entry.value;
    if (!field->has_presence() || reflection.HasField(message, field)) {
      std::visit([&](auto& v) { Read(reflection, message, field, v); }, value);
    }
    fields.Set(entry.name, value);
  }
  return fields;
}

std::vector<std::string> FieldProblems(const Descriptor& message, const Attributes& defaults,
                                       const std::vector<std::string>& other) {
  std::vector<std::string> problems;
  for (const Attributes::Entry& entry : defaults.entries()) {
    std::string problem = ProblemOf(message, entry);
    if (!problem.empty()) problems.push_back(std::move(problem));
  }
  for (int i = 0; i < message.field_count(); ++i) {
    const std::string& name = message.field(i)->name();
    if (defaults.Find(name) != nullptr) continue;
    if (std::find(other.begin(), other.end(), name) != other.end()) continue;
    problems.push_back(absl::StrCat(message.full_name(), ".", name, " is not in the struct"));
  }
  return problems;
}

}  // namespace stagecoach
