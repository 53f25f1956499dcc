#include "services/common/convert/convert_fields.h"

#include <algorithm>
#include <variant>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "google/protobuf/descriptor.h"

namespace stagecoach {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// How a type of attribute is read from and written to a field: an overload each of Read and Write below.
const char* TypeName(bool) { return "bool"; }
const char* TypeName(int64_t) { return "int64"; }
const char* TypeName(double) { return "double"; }

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
  const std::string type = std::visit([](auto v) { return TypeName(v); }, entry.value);
  if (field->is_repeated() || type != field->type_name()) {
    return absl::StrCat(name, " is ", field->is_repeated() ? "repeated " : "", field->type_name(),
                        "; the struct has ", type);
  }
  const bool nothing = std::visit([](auto v) { return v == decltype(v){}; }, entry.value);
  if (!nothing && !field->has_presence()) {
    return absl::StrCat(name, " must be optional: its default is not 0");
  }
  return "";
}

}  // namespace

void SetFields(const Attributes& attributes, Message* message) {
  for (const Attributes::Entry& entry : attributes.entries()) {
    const FieldDescriptor* field = FieldNamed(*message->GetDescriptor(), entry.name);
    std::visit([&](auto v) { Write(*message->GetReflection(), message, field, v); }, entry.value);
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
