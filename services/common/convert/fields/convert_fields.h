// Fields of messages by reflection: one value, or all attributes of a struct
// (operations/attributes.h). Names and types are the same on both sides. Tests find a field that
// one side alone has (field_problems_testing.h). A choice is an enum whose values have its names:
// "PADDING_SAME" of enum Padding for "same". 0 is "left out".
// Threads: any.
// Errors:  CHECKs that there is such a field; protobuf ends the process if it has another type.
#ifndef STAGECOACH_SERVICES_COMMON_CONVERT_FIELDS_CONVERT_FIELDS_H_
#define STAGECOACH_SERVICES_COMMON_CONVERT_FIELDS_CONVERT_FIELDS_H_

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "google/protobuf/reflection.h"
#include "operations/attributes.h"

namespace stagecoach {

using ProtoReflection = google::protobuf::Reflection;
using ProtoField = google::protobuf::FieldDescriptor;

const ProtoField* FieldNamed(const google::protobuf::Descriptor& message, std::string_view name);
// false: it was left out, so its default holds.
bool IsGiven(const google::protobuf::Message& message, const ProtoField* field);

// Protobuf's functions for a type of number.
template <auto type, auto get, auto set>
struct AccessBy {
  static constexpr ProtoField::CppType kType = type;
  static constexpr auto kGet = get;
  static constexpr auto kSet = set;
};
template <typename T>
struct FieldAccess;
template <>
struct FieldAccess<bool>
    : AccessBy<ProtoField::CPPTYPE_BOOL, &ProtoReflection::GetBool, &ProtoReflection::SetBool> {};
template <>
struct FieldAccess<int32_t>
    : AccessBy<ProtoField::CPPTYPE_INT32, &ProtoReflection::GetInt32, &ProtoReflection::SetInt32> {
};
template <>
struct FieldAccess<int64_t>
    : AccessBy<ProtoField::CPPTYPE_INT64, &ProtoReflection::GetInt64, &ProtoReflection::SetInt64> {
};
template <>
struct FieldAccess<uint32_t> : AccessBy<ProtoField::CPPTYPE_UINT32, &ProtoReflection::GetUInt32,
                                        &ProtoReflection::SetUInt32> {};
template <>
struct FieldAccess<uint64_t> : AccessBy<ProtoField::CPPTYPE_UINT64, &ProtoReflection::GetUInt64,
                                        &ProtoReflection::SetUInt64> {};
template <>
struct FieldAccess<double> : AccessBy<ProtoField::CPPTYPE_DOUBLE, &ProtoReflection::GetDouble,
                                      &ProtoReflection::SetDouble> {};

template <typename T>
concept NumberField = requires {
  FieldAccess<T>::kType;
};
template <typename T>
concept ListElement = NumberField<T> || std::same_as<T, std::string>;

template <NumberField T>
void WriteField(google::protobuf::Message* message, const ProtoField* field, T value) {
  (message->GetReflection()->*FieldAccess<T>::kSet)(message, field, value);
}
template <ListElement T>
void WriteField(google::protobuf::Message* message, const ProtoField* field,
                const std::vector<T>& values) {
  auto list = message->GetReflection()->GetMutableRepeatedFieldRef<T>(message, field);
  list.Clear();
  for (const T& value : values) list.Add(value);
}
// CHECKs that an enum has such a value. "" leaves it out; a number is one that ReadField gave.
void WriteField(google::protobuf::Message* message, const ProtoField* field,
                const std::string& text);

template <NumberField T>
void ReadField(const google::protobuf::Message& message, const ProtoField* field, T& value) {
  value = (message.GetReflection()->*FieldAccess<T>::kGet)(message, field);
}
template <ListElement T>
void ReadField(const google::protobuf::Message& message, const ProtoField* field,
               std::vector<T>& values) {
  const auto list = message.GetReflection()->GetRepeatedFieldRef<T>(message, field);
  values.assign(list.begin(), list.end());
}
// If an enum was left out, the text stays. If this version does not know the value, the text is its
// number, which is no value's name: false.
bool ReadField(const google::protobuf::Message& message, const ProtoField* field,
               std::string& text);

// Sets the field of each attribute, also if it has its default.
void SetFields(const Attributes& attributes, google::protobuf::Message* message);

// The fields of a message: if an optional one or a choice was left out, it has its default. Others
// that were left out are 0, false or empty on the wire.
Attributes FieldsOf(const google::protobuf::Message& message, const Attributes& defaults);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_CONVERT_FIELDS_CONVERT_FIELDS_H_
