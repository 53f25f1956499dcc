#include "services/common/convert/spec/convert_kind.h"

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/unknown_field_set.h"

namespace stagecoach {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::OneofDescriptor;

const OneofDescriptor& KindChoice(const Message& message) {
  const OneofDescriptor* choice = message.GetDescriptor()->FindOneofByName("kind");
  CHECK(choice != nullptr) << message.GetDescriptor()->full_name() << " has no kinds";
  return *choice;
}

const FieldDescriptor* KindField(const Message& message) {
  return message.GetReflection()->GetOneofFieldDescriptor(message, &KindChoice(message));
}

// "constant, cosine or linear", in the order of the message.
std::string Choices(const Message& message) {
  const OneofDescriptor& choice = KindChoice(message);
  std::string names;
  for (int i = 0; i < choice.field_count(); ++i) {
    const char* separator = i == 0 ? "" : i + 1 < choice.field_count() ? ", " : " or ";
    absl::StrAppend(&names, separator, choice.field(i)->name());
  }
  return names;
}

}  // namespace

Message* KindToProto(const std::string& kind, const Attributes& fields, Message* message) {
  const FieldDescriptor* field = FieldNamed(*message->GetDescriptor(), kind);
  Message* member = message->GetReflection()->MutableMessage(message, field);
  SetFields(fields, member);
  return member;
}

void KindToProto(const KindSpec& spec, Message* message) {
  if (!spec.kind.empty()) KindToProto(spec.kind, spec.attributes, message);
}

const Message* KindMember(const Message& message) {
  const FieldDescriptor* field = KindField(message);
  return field == nullptr ? nullptr : &message.GetReflection()->GetMessage(message, field);
}

std::string KindName(const Message& message) { return KindField(message)->name(); }

absl::Status NoKindSet(const Message& message, const std::string& path) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": not set, want ", Choices(message)));
}

absl::Status CheckKindKnown(const Message& message, const std::string& path) {
  if (message.GetReflection()->GetUnknownFields(message).empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": this version does not know its kind; want ", Choices(message)));
}

}  // namespace stagecoach
