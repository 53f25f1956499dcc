// Conversion between messages and structs. One list of fields serves both directions: the struct's
// visit (operations/attributes.h), or a VisitFields beside the conversion of a struct without one.
//   numbers, flags, texts, lists of them   fields of the same type
//   an enum by the names of its values     an enum; "" stands for one that is left out
//   Id, std::optional                      a field that is left out without a value
//   structs, lists of them                 messages
// Threads: any.
// Errors:  INVALID_ARGUMENT with the field's path if this version does not know an enum's value.
//          CHECKs that there is such a field. If it has another type, protobuf ends the process.
#ifndef STAGECOACH_SERVICES_COMMON_CONVERT_FIELDS_MESSAGE_FIELDS_H_
#define STAGECOACH_SERVICES_COMMON_CONVERT_FIELDS_MESSAGE_FIELDS_H_

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/errors/check.h"
#include "base/ids.h"
#include "google/protobuf/message.h"
#include "operations/attributes.h"
#include "services/common/convert/fields/convert_fields.h"

namespace stagecoach {

template <typename Visitor, typename T>
requires requires(Visitor& visit, T& value) { value.Visit(visit); }
void VisitFields(Visitor& visit, T& value) { value.Visit(visit); }

// Writes or reads the visited fields. Ranges are checked elsewhere.
class MessageVisitor {
 public:
  explicit MessageVisitor(google::protobuf::Message* to) : from_(*to), to_(to) {}
  // path: before the names of fields in errors, "pipeline."
  explicit MessageVisitor(const google::protobuf::Message& from, std::string path = "")
      : from_(from), path_(std::move(path)) {}

  // Reading leaves the value as it is if the field was left out.
  template <typename T>
  void Field(std::string_view name, T& value) {
    const ProtoField* field = FieldNamed(*from_.GetDescriptor(), name);
    if (to_ != nullptr || IsGiven(from_, field)) Convert(field, value);
  }
  template <typename T>
  void UnlessDefault(std::string_view name, T& value) {
    if (to_ == nullptr || value != T()) Field(name, value);
  }
  void Flag(std::string_view name, bool& value) { Field(name, value); }
  void Count(std::string_view name, int64_t& value, int64_t, int64_t) { Field(name, value); }
  void Rate(std::string_view name, double& value) { Field(name, value); }
  void Between(std::string_view name, double& value, double, double) { Field(name, value); }
  template <typename Enum>
  void Choice(std::string_view name, Enum& value, ChoiceNames names) {
    std::string text(names.begin()[static_cast<size_t>(value)]);
    Field(name, text);
    for (size_t i = 0; i < names.size(); ++i) {
      if (names.begin()[i] == text) value = static_cast<Enum>(i);
    }
  }
  const absl::Status& status() const { return status_; }  // the first error of reading

 private:
  template <typename T>
  void Plain(const ProtoField* field, T& value) {
    if (to_ != nullptr) return WriteField(to_, field, value);
    ReadField(from_, field, value);
  }
  template <NumberField T>
  void Convert(const ProtoField* field, T& value) {
    Plain(field, value);
  }
  template <ListElement T>
  void Convert(const ProtoField* field, std::vector<T>& values) {
    Plain(field, values);
  }
  void Convert(const ProtoField* field, std::string& text);
  template <typename Tag>
  void Convert(const ProtoField* field, Id<Tag>& id) {
    if (to_ == nullptr || id.valid()) Plain(field, id.value);
  }
  template <typename T>
  void Convert(const ProtoField* field, std::optional<T>& value) {
    if (to_ == nullptr) value.emplace();
    if (value.has_value()) Convert(field, *value);
  }
  template <typename T>
  void Convert(const ProtoField* field, std::vector<T>& values) {
    if (to_ == nullptr) values.resize(from_.GetReflection()->FieldSize(from_, field));
    for (size_t i = 0; i < values.size(); ++i) Inner(field, static_cast<int>(i), values[i]);
  }
  template <typename T>
  void Convert(const ProtoField* field, T& value) {
    Inner(field, 0, value);
  }
  template <typename T>
  void Inner(const ProtoField* field, int index, T& value) {
    MessageVisitor inner = VisitorOf(field, index);
    VisitFields(inner, value);
    status_.Update(inner.status_);
  }
  // Visitor of a message in this one; writing to a list adds an element.
  MessageVisitor VisitorOf(const ProtoField* field, int index);

  const google::protobuf::Message& from_;
  google::protobuf::Message* const to_ = nullptr;  // null: reads
  const std::string path_;
  absl::Status status_;
};

template <typename T>
void WriteMessage(T value, google::protobuf::Message* message) {
  MessageVisitor writer(message);
  VisitFields(writer, value);
}
template <typename Message, typename T>
Message MessageOf(T value) {
  Message message;
  WriteMessage(std::move(value), &message);
  return message;
}

template <typename T>
absl::Status ReadMessage(const google::protobuf::Message& message, T* value) {
  MessageVisitor reader(message);
  VisitFields(reader, *value);
  return reader.status();
}
// For a message without enums, which has no errors.
template <typename T>
T ValueOf(const google::protobuf::Message& message) {
  T value;
  CHECK_OK(ReadMessage(message, &value));
  return value;
}

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_CONVERT_FIELDS_MESSAGE_FIELDS_H_
