#include "services/common/convert/clean_texts.h"

#include <string>
#include <string_view>
#include <vector>

#include "base/utf8.h"

namespace stagecoach {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

bool HasLines(const FieldDescriptor& field) {
  for (const std::string_view name :
       {"message", "error", "reason", "schedule", "timeline", "unreachable"}) {
    if (field.name() == name) return true;
  }
  return false;
}

std::string Clean(const FieldDescriptor& field, const std::string& text) {
  return HasLines(field) ? ShownText(text) : ShownName(text);
}

void CleanStrings(const Reflection& reflection, const FieldDescriptor& field, Message* message) {
  std::string buffer;
  if (!field.is_repeated()) {
    const std::string& text = reflection.GetStringReference(*message, &field, &buffer);
    if (std::string clean = Clean(field, text); clean != text) {
      reflection.SetString(message, &field, std::move(clean));
    }
    return;
  }
  for (int i = 0; i < reflection.FieldSize(*message, &field); ++i) {
    const std::string& text = reflection.GetRepeatedStringReference(*message, &field, i, &buffer);
    if (std::string clean = Clean(field, text); clean != text) {
      reflection.SetRepeatedString(message, &field, i, std::move(clean));
    }
  }
}

}  // namespace

void CleanTexts(Message* message) {
  const bool has_paths = message->GetDescriptor()->full_name() == "stagecoach.v1.JobSpec";
  const Reflection& reflection = *message->GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(*message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->is_map() || (has_paths && field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE)) {
      continue;
    }
    if (field->type() == FieldDescriptor::TYPE_STRING) {
      CleanStrings(reflection, *field, message);
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE && field->is_repeated()) {
      for (int i = 0; i < reflection.FieldSize(*message, field); ++i) {
        CleanTexts(reflection.MutableRepeatedMessage(message, field, i));
      }
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      CleanTexts(reflection.MutableMessage(message, field));
    }
  }
}

}  // namespace stagecoach
