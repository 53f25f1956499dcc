#include "base/json/json_field.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/field_check.h"
#include "base/utf8.h"

namespace stagecoach {
namespace {

constexpr int kMostJsonDepth = 24;  // a tokenizer's files have 7
constexpr size_t kMostShownJson = 100;

// A reader of deeper documents may need more stack than there is.
bool IsTooDeep(std::string_view bytes) {
  int depth = 0;
  bool text = false;
  for (size_t i = 0; i < bytes.size(); ++i) {
    const char c = bytes[i];
    if (text) {
      if (c == '\\') ++i;
      if (c == '"') text = false;
    } else if (c == '"') {
      text = true;
    } else if (c == '{' || c == '[') {
      if (++depth > kMostJsonDepth) return true;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return false;
}

}  // namespace

absl::StatusOr<nlohmann::json> ParseJsonDocument(std::string_view bytes) {
  if (IsTooDeep(bytes)) {
    return absl::InvalidArgumentError(
        absl::StrCat("JSON with objects or arrays in each other more than ", kMostJsonDepth,
                     " deep; give a file that the library of the model wrote"));
  }
  // nlohmann::json reports by exceptions; they end here.
  try {
    return nlohmann::json::parse(bytes);
  } catch (const nlohmann::json::exception& error) {
    // "[json.exception.parse_error.101] parse error at line 1, column 5: syntax error ...".
    std::string_view reason = error.what();
    if (const size_t at = reason.find("] "); at != reason.npos) reason.remove_prefix(at + 2);
    return absl::InvalidArgumentError(
        absl::StrCat("no JSON: ", ShownName(std::string(reason.substr(0, kMostShownJson))),
                     "; it may be damaged: fetch the file again"));
  }
}

JsonField JsonField::Of(const std::string& name) const {
  std::string path = path_.empty() ? name : absl::StrCat(path_, ".", name);
  if (!is_object()) return JsonField(nullptr, std::move(path));
  const auto found = value_->find(name);
  return JsonField(found == value_->end() ? nullptr : &*found, std::move(path));
}

JsonField JsonField::At(size_t index) const {
  return JsonField(&value_->at(index), absl::StrCat(path_, "[", index, "]"));
}

absl::StatusOr<std::string> JsonField::Text() const {
  if (!is_text()) return Refused("must be a string");
  return value_->get<std::string>();
}

absl::StatusOr<std::string> JsonField::Text(const std::string& otherwise) const {
  if (missing()) return otherwise;
  return Text();
}

absl::StatusOr<bool> JsonField::Flag() const {
  if (value_ == nullptr || !value_->is_boolean()) return Refused("must be true or false");
  return value_->get<bool>();
}

absl::StatusOr<bool> JsonField::Flag(bool otherwise) const {
  if (missing()) return otherwise;
  return Flag();
}

absl::StatusOr<int64_t> JsonField::Whole(int64_t low, int64_t high) const {
  const bool whole = value_ != nullptr && value_->is_number_integer();
  // Beyond int64_t the document has an unsigned number.
  const bool huge = whole && value_->is_number_unsigned() &&
                    value_->get<uint64_t>() > static_cast<uint64_t>(high);
  if (!whole || huge || value_->get<int64_t>() < low || value_->get<int64_t>() > high) {
    return Refused(absl::StrCat("must be a whole number from ", low, " to ", high));
  }
  return value_->get<int64_t>();
}

absl::StatusOr<int64_t> JsonField::Whole(int64_t low, int64_t high, int64_t otherwise) const {
  if (missing()) return otherwise;
  return Whole(low, high);
}

absl::StatusOr<double> JsonField::Number() const {
  if (value_ == nullptr || !value_->is_number() || !std::isfinite(value_->get<double>())) {
    return Refused("must be a number");
  }
  return value_->get<double>();
}

absl::StatusOr<double> JsonField::Number(double otherwise) const {
  if (missing()) return otherwise;
  return Number();
}

absl::StatusOr<std::vector<JsonField>> JsonField::Items() const {
  std::vector<JsonField> items;
  if (missing()) return items;
  if (!is_array()) return Refused("must be an array");
  for (size_t i = 0; i < value_->size(); ++i) items.push_back(At(i));
  return items;
}

absl::StatusOr<std::string> JsonField::Type() const {
  if (!is_object()) return Refused("must be an object with a field \"type\"");
  return Of("type").Text();
}

absl::Status JsonField::Refused(const std::string& remedy) const {
  return FieldError(ShownName(path_), Shown(), remedy);
}

std::string JsonField::Shown() const {
  if (value_ == nullptr) return "missing";
  if (is_array()) return absl::StrCat("an array of ", value_->size());
  if (is_object()) return "an object";
  const std::string text = value_->dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  if (text.size() <= kMostShownJson) return ShownName(text);
  return absl::StrCat(ShownName(text.substr(0, kMostShownJson)), "...");
}

}  // namespace stagecoach
