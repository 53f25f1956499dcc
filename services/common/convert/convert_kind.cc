#include "services/common/convert/convert_kind.h"

#include "absl/strings/str_cat.h"
#include "base/check.h"
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

const FieldDescriptor* Member(const Message& message) {
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

void KindToProto(const KindSpec& spec, Message* message) {
  if (spec.kind.empty()) return;
  const FieldDescriptor* field = message->GetDescriptor()->FindFieldByName(spec.kind);
  CHECK(field != nullptr) << "no message for " << spec.kind;
  SetFields(spec.attributes, message->GetReflection()->MutableMessage(message, field));
}

absl::StatusOr<const Message*> SetMember(const Message& message, const std::string& path) {
  const FieldDescriptor* field = Member(message);
  if (field != nullptr) return &message.GetReflection()->GetMessage(message, field);
  if (message.GetReflection()->GetUnknownFields(message).empty()) return nullptr;
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": this version does not know its kind; want ", Choices(message)));
}

absl::Status NoKindSet(const Message& message, const std::string& path) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": not set, want ", Choices(message)));
}

std::string MemberName(const Message& of) { return Member(of)->name(); }

}  // namespace stagecoach
