// FieldProblems: finds fields for which SetFields and FieldsOf (convert_fields.h) would fail.
#ifndef STAGECOACH_SERVICES_COMMON_CONVERT_FIELDS_FIELD_PROBLEMS_TESTING_H_
#define STAGECOACH_SERVICES_COMMON_CONVERT_FIELDS_FIELD_PROBLEMS_TESTING_H_

#include <algorithm>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "google/protobuf/descriptor.h"
#include "operations/attributes.h"
#include "services/common/convert/fields/convert_fields.h"
#include "services/common/convert/fields/enum_name.h"

namespace stagecoach {

// Whether a field has the type of the attribute.
template <NumberField T>
bool Takes(const ProtoField& field, const T&) {
  return !field.is_repeated() && field.cpp_type() == FieldAccess<T>::kType;
}
inline bool Takes(const ProtoField& field, const std::string&) {
  return !field.is_repeated() &&
         (field.type() == ProtoField::TYPE_STRING || field.type() == ProtoField::TYPE_ENUM);
}
template <NumberField T>
bool Takes(const ProtoField& field, const std::vector<T>&) {
  return field.is_repeated() && field.cpp_type() == FieldAccess<T>::kType;
}

inline bool Takes(const ProtoField& field, const std::vector<std::string>&) {
  return field.is_repeated() && field.type() == ProtoField::TYPE_STRING;
}

inline const char* TypeName(bool) { return "bool"; }
inline const char* TypeName(int64_t) { return "int64"; }
inline const char* TypeName(double) { return "double"; }
inline const char* TypeName(const std::string&) { return "string or a choice"; }
inline const char* TypeName(const std::vector<int64_t>&) { return "repeated int64"; }
inline const char* TypeName(const std::vector<double>&) { return "repeated double"; }
inline const char* TypeName(const std::vector<std::string>&) { return "repeated string"; }

// Whether a field that was left out may stand for this default. A choice may for all its names.
inline bool IsDefault(const ProtoField& field, const std::string& v) {
  if (field.cpp_type() == ProtoField::CPPTYPE_ENUM) {
    return EnumNumber(*field.enum_type(), v).has_value();
  }
  return v.empty() || field.has_presence();
}
template <typename T>
bool IsDefault(const ProtoField& field, const T& v) {
  return v == T{} || field.has_presence();
}

// The type that a field needs for its default.
inline std::string Wanted(const ProtoField& field, const AttributeValue& value) {
  if (field.cpp_type() == ProtoField::CPPTYPE_ENUM) {
    return absl::StrCat(" has no value ", std::get<std::string>(value), ", which is the default");
  }
  if (field.is_repeated()) return " must be empty by default: a list is never optional";
  return " must be optional: its default is not 0";
}

inline std::string TypeOf(const ProtoField& field) {
  return absl::StrCat(field.is_repeated() ? "repeated " : "", field.type_name());
}

// Problem of one attribute; empty if its field fits.
inline std::string ProblemOf(const google::protobuf::Descriptor& message,
                             const Attributes::Entry& entry) {
  const std::string name = absl::StrCat(message.full_name(), ".", entry.name);
  const ProtoField* field = message.FindFieldByName(entry.name);
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

// One line a problem; empty if message and defaults agree. Ignores the fields of `other`.
inline std::vector<std::string> FieldProblems(const google::protobuf::Descriptor& message,
                                              const Attributes& defaults,
                                              const std::vector<std::string>& other = {}) {
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

#endif  // STAGECOACH_SERVICES_COMMON_CONVERT_FIELDS_FIELD_PROBLEMS_TESTING_H_
