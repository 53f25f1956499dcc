#include "services/cli/spec/message_reader.h"

#include <charconv>
#include <cmath>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "base/errors/check.h"
#include "base/errors/status.h"
#include "base/errors/suggest.h"
#include "base/utf8.h"
#include "google/protobuf/descriptor.h"
#include "services/cli/spec/beside_job_file.h"
#include "services/cli/spec/strange_characters.h"
#include "services/common/convert/fields/enum_name.h"
#include "stagecoach/v1/model.pb.h"

namespace stagecoach {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumValueDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::OneofDescriptor;
using google::protobuf::Reflection;

// Longest value that an error quotes.
constexpr size_t kQuotedBytes = 60;
constexpr char kFileToo[] = ": is given, and schedule: {file: PATH} too; keep one of the two";

std::string Quote(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::kNull:
      return "nothing";
    case YamlNode::Kind::kList:
      return "a list";
    case YamlNode::Kind::kMap:
      return "a group of fields";
    case YamlNode::Kind::kScalar:
      break;
  }
  if (node.text.size() <= kQuotedBytes) return absl::StrCat("\"", node.text, "\"");
  return absl::StrCat("\"", node.text.substr(0, kQuotedBytes), "...\"");
}

std::vector<std::string> FieldNames(const Descriptor& type) {
  std::vector<std::string> names;
  for (int i = 0; i < type.field_count(); ++i) names.push_back(type.field(i)->name());
  return names;
}

std::vector<std::string> EnumNames(const FieldDescriptor& field) {
  std::vector<std::string> names;
  for (int i = 0; i < field.enum_type()->value_count(); ++i) {
    const EnumValueDescriptor* value = field.enum_type()->value(i);
    if (value->number() != 0) names.push_back(ShortEnumName(*value));
  }
  return names;
}

template <typename T>
std::optional<T> ParseNumber(const std::string& text) {
  // from_chars takes no '+'; YAML writers do.
  const char* begin = text.data() + (text.size() > 1 && text[0] == '+' && text[1] != '-' ? 1 : 0);
  const char* end = text.data() + text.size();
  T value{};
  const auto [rest, error] = std::from_chars(begin, end, value);
  if (error != std::errc() || rest != end) return std::nullopt;
  return value;
}

class Walker {
 public:
  Walker(const std::string& file, std::map<std::string, Position>* positions)
      : file_(file), positions_(positions) {}

  absl::Status ReadFields(const YamlNode& node, const std::string& path, Message* message) {
    if (node.kind != YamlNode::Kind::kMap) return Wants(node, path, WantedFields(*message, path));
    for (const YamlField& given : node.fields) {
      const std::string field_path =
          path.empty() ? given.name : absl::StrCat(path, ".", given.name);
      const FieldDescriptor* field = message->GetDescriptor()->FindFieldByName(given.name);
      if (field == nullptr) {
        return ErrorAt(file_, given.position,
                       absl::StrCat(field_path, ": unknown field", StrangeText(given.name),
                                    Suggestion(given.name, FieldNames(*message->GetDescriptor()))));
      }
      RETURN_IF_ERROR(CheckChoice(given, field_path, *field, *message));
      (*positions_)[field_path] = given.position;
      if (field->is_repeated()) {
        RETURN_IF_ERROR(ReadList(given.value, field_path, *field, message));
      } else {
        RETURN_IF_ERROR(ReadSingle(given.value, field_path, *field, message));
      }
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Wants(const YamlNode& node, const std::string& path, const std::string& wanted) {
    const std::string name = path.empty() ? "the job spec" : path;
    if (node.kind == YamlNode::Kind::kNull) {
      return ErrorAt(file_, node.position,
                     absl::StrCat(name, ": no value given; wants ", wanted, ", or leave it out"));
    }
    return ErrorAt(
        file_, node.position,
        absl::StrCat(name, ": ", Quote(node), StrangeText(node.text), "; wants ", wanted));
  }

  static std::string WantedFields(const Message& message, const std::string& path) {
    const std::vector<std::string> names = FieldNames(*message.GetDescriptor());
    if (IsPartition(message)) return "auto, uniform or {cuts: [3, 6]}";
    if (names.empty()) return "{}";
    return absl::StrCat(path.empty() ? "fields" : "a group of fields", " (",
                        absl::StrJoin(names, ", "), ")");
  }

  static bool IsPartition(const Message& message) {
    return message.GetDescriptor()->full_name() == "stagecoach.v1.Partition";
  }

  // protobuf would silently let the second member of a oneof replace the first.
  absl::Status CheckChoice(const YamlField& given, const std::string& path,
                           const FieldDescriptor& field, const Message& message) {
    const OneofDescriptor* choice = field.real_containing_oneof();
    if (choice == nullptr) return absl::OkStatus();
    const FieldDescriptor* other =
        message.GetReflection()->GetOneofFieldDescriptor(message, choice);
    if (other == nullptr) return absl::OkStatus();
    return ErrorAt(
        file_, given.position,
        absl::StrCat(path, ": ", other->name(), " is given already; keep one of the two"));
  }

  absl::Status ReadList(const YamlNode& node, const std::string& path, const FieldDescriptor& field,
                        Message* message) {
    const Reflection& reflection = *message->GetReflection();
    const bool of_counts = field.cpp_type() == FieldDescriptor::CPPTYPE_INT64;
    const bool of_reals = field.cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE;
    const bool may_be_one = (of_counts && !IsPartition(*message)) || of_reals;
    // `kernel: 3` is short for `kernel: [3]`, `mean: 0.5` for `mean: [0.5]`.
    const std::optional<int64_t> count =
        may_be_one && of_counts ? Scalar<int64_t>(node) : std::nullopt;
    if (count.has_value()) {
      reflection.AddInt64(message, &field, *count);
      return absl::OkStatus();
    }
    const std::optional<double> real = of_reals ? Scalar<double>(node) : std::nullopt;
    if (real.has_value() && std::isfinite(*real)) {
      reflection.AddDouble(message, &field, *real);
      return absl::OkStatus();
    }
    if (node.kind != YamlNode::Kind::kList) {
      return Wants(node, path, may_be_one ? "a list, [...], or one number" : "a list, [...]");
    }
    for (size_t i = 0; i < node.items.size(); ++i) {
      const YamlNode& item = node.items[i];
      const std::string item_path = absl::StrCat(path, "[", i, "]");
      (*positions_)[item_path] = item.position;
      if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
        RETURN_IF_ERROR(ReadFields(item, item_path, reflection.AddMessage(message, &field)));
        continue;
      }
      if (field.cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
        if (!IsScalar(item)) return Wants(item, item_path, "a text");
        reflection.AddString(message, &field, item.text);
        continue;
      }
      if (field.cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE) {
        const std::optional<double> value = Scalar<double>(item);
        if (!value.has_value() || !std::isfinite(*value)) {
          return Wants(item, item_path, "a finite number");
        }
        reflection.AddDouble(message, &field, *value);
        continue;
      }
      CHECK(of_counts) << "no list of this type is in the job spec: " << field.full_name();
      const std::optional<int64_t> value = Scalar<int64_t>(item);
      if (!value.has_value()) return Wants(item, item_path, "a whole number");
      reflection.AddInt64(message, &field, *value);
    }
    return absl::OkStatus();
  }

  absl::Status ReadSingle(const YamlNode& node, const std::string& path,
                          const FieldDescriptor& field, Message* message) {
    const Reflection& reflection = *message->GetReflection();
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_MESSAGE:
        return ReadSubmessage(node, path, reflection.MutableMessage(message, &field));
      case FieldDescriptor::CPPTYPE_INT64:
        return ReadInteger(node, path, field, message);
      case FieldDescriptor::CPPTYPE_UINT64: {
        const std::optional<uint64_t> value = Scalar<uint64_t>(node);
        if (!value.has_value()) return Wants(node, path, "a whole number from 0 to 2^64 - 1");
        reflection.SetUInt64(message, &field, *value);
        return absl::OkStatus();
      }
      case FieldDescriptor::CPPTYPE_DOUBLE: {
        const std::optional<double> value = Scalar<double>(node);
        if (!value.has_value() || !std::isfinite(*value)) {
          return Wants(node, path, "a finite number");
        }
        reflection.SetDouble(message, &field, *value);
        return absl::OkStatus();
      }
      case FieldDescriptor::CPPTYPE_BOOL: {
        const bool is_true = node.text == "true";
        if (!IsScalar(node) || (!is_true && node.text != "false")) {
          return Wants(node, path, "true or false, in lower case (yes, no, on and off are texts)");
        }
        reflection.SetBool(message, &field, is_true);
        return absl::OkStatus();
      }
      case FieldDescriptor::CPPTYPE_STRING:
        if (!IsScalar(node)) return Wants(node, path, "a text");
        if (!reflection.GetString(*message, &field).empty()) {
          return ErrorAt(file_, node.position, absl::StrCat(path, kFileToo));
        }
        reflection.SetString(message, &field, node.text);
        return absl::OkStatus();
      case FieldDescriptor::CPPTYPE_ENUM:
        return ReadEnum(node, path, field, message);
      default:
        CHECK(false) << "no field of this type is in the job spec: " << field.full_name();
        return absl::OkStatus();
    }
  }

  absl::Status ReadSubmessage(const YamlNode& node, const std::string& path, Message* message) {
    // `partition: uniform` is short for `partition: {rule: uniform}`.
    if (IsPartition(*message) && IsScalar(node)) {
      return ReadEnum(node, path, *message->GetDescriptor()->FindFieldByName("rule"), message);
    }
    return ReadFields(node, path, message);
  }

  absl::Status ReadInteger(const YamlNode& node, const std::string& path,
                           const FieldDescriptor& field, Message* message) {
    const bool may_be_auto = field.full_name() == "stagecoach.v1.Pipeline.stages";
    std::optional<int64_t> value = Scalar<int64_t>(node);
    if (may_be_auto && IsScalar(node) && node.text == "auto") value = 0;
    if (!value.has_value()) {
      return Wants(node, path, may_be_auto ? "a whole number or auto" : "a whole number");
    }
    message->GetReflection()->SetInt64(message, &field, *value);
    return absl::OkStatus();
  }

  // `schedule: {file: wave.txt}` is short for `schedule: own` and the file's text as own_schedule.
  absl::Status ReadScheduleFile(const YamlNode& node, const std::string& path,
                                const FieldDescriptor& schedule, Message* message) {
    const bool one = node.fields.size() == 1 && node.fields[0].name == "file";
    if (!one || !IsScalar(node.fields[0].value)) {
      return Wants(node, path, "a schedule's name or {file: PATH}");
    }
    const YamlNode& file = node.fields[0].value;
    const FieldDescriptor& own = *message->GetDescriptor()->FindFieldByName("own_schedule");
    const absl::StatusOr<std::string> text =
        ReadSmallFile(BesideJobFile(file_, file.text), YamlLimits{}.bytes);
    if (!text.ok()) {
      return ErrorAt(file_, file.position, absl::StrCat(path, ".file: ", text.status().message()));
    }
    if (absl::StripAsciiWhitespace(*text).empty()) {
      return ErrorAt(file_, file.position,
                     absl::StrCat(path, ".file: ", file.text,
                                  " is empty; write a line for each stage, \"stage 0: F0 B0\""));
    }
    if (!IsUtf8Text(*text)) {
      return ErrorAt(file_, file.position, absl::StrCat(path, ".file: ", file.text, " is not UTF-8 text"));
    }
    const Reflection& reflection = *message->GetReflection();
    if (!reflection.GetString(*message, &own).empty()) {
      return ErrorAt(file_, node.position, absl::StrCat("pipeline.own_schedule", kFileToo));
    }
    reflection.SetEnumValue(message, &schedule, v1::SCHEDULE_KIND_OWN);
    reflection.SetString(message, &own, *text);
    (*positions_)["pipeline.own_schedule"] = file.position;
    return absl::OkStatus();
  }

  absl::Status ReadEnum(const YamlNode& node, const std::string& path, const FieldDescriptor& field,
                        Message* message) {
    if (field.full_name() == "stagecoach.v1.Pipeline.schedule" &&
        node.kind == YamlNode::Kind::kMap) {
      return ReadScheduleFile(node, path, field, message);
    }
    const std::vector<std::string> names = EnumNames(field);
    if (!IsScalar(node)) {
      return Wants(node, path, absl::StrCat("one of ", absl::StrJoin(names, ", ")));
    }
    for (int i = 0; i < field.enum_type()->value_count(); ++i) {
      const EnumValueDescriptor* value = field.enum_type()->value(i);
      // The long name is what protobuf's own JSON has, so that printed specs can be read back.
      // There a field that was left out has the value 0, which has no short name.
      const bool is_short = value->number() != 0 && node.text == ShortEnumName(*value);
      if (!is_short && node.text != value->name()) continue;
      message->GetReflection()->SetEnum(message, &field, value);
      return absl::OkStatus();
    }
    return ErrorAt(file_, node.position,
                   absl::StrCat(path, ": ", Quote(node), " is not one of ",
                                absl::StrJoin(names, ", "), DidYouMean(node.text, names)));
  }

  static bool IsScalar(const YamlNode& node) { return node.kind == YamlNode::Kind::kScalar; }

  template <typename T>
  static std::optional<T> Scalar(const YamlNode& node) {
    return IsScalar(node) ? ParseNumber<T>(node.text) : std::nullopt;
  }

  const std::string& file_;
  std::map<std::string, Position>* const positions_;
};

}  // namespace

absl::Status ReadMessage(const YamlNode& root, const std::string& file, Message* message,
                         std::map<std::string, Position>* positions) {
  return Walker(file, positions).ReadFields(root, "", message);
}

}  // namespace stagecoach
