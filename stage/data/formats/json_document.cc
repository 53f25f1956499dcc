#include "stage/data/formats/json_document.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/utf8.h"

namespace stagecoach {
namespace {

using Json = nlohmann::json;

constexpr size_t kMostFieldsNamed = 20;
constexpr size_t kMostShown = 160;  // bytes of what a line says, which may have millions
constexpr char kGive[] = "; each line must be one whole JSON object";

std::string Shortened(std::string_view text) {
  if (text.size() <= kMostShown) return ShownName(text);
  return absl::StrCat(ShownName(text.substr(0, kMostShown)), "...");
}

// Keeps nothing but the document and the names of the object's fields.
class DocumentEvents final : public Json::json_sax_t {
 public:
  explicit DocumentEvents(const std::string& field) : field_(field) {}

  bool null() override { return Other("null"); }
  bool boolean(bool) override { return Other("a boolean"); }
  bool number_integer(number_integer_t) override { return Other("a number"); }
  bool number_unsigned(number_unsigned_t) override { return Other("a number"); }
  bool number_float(number_float_t, const string_t&) override { return Other("a number"); }
  bool binary(binary_t&) override { return Other("binary data"); }
  bool string(string_t& value) override {
    if (depth_ != 1 || !ours_) return Other("a string");
    document_ = std::move(value);
    type_ = "";
    return true;
  }
  bool start_object(size_t) override {
    Other("an object");
    if (depth_++ == 0) object_ = true;
    return true;
  }
  bool end_object() override {
    --depth_;
    return true;
  }
  bool start_array(size_t) override {
    Other("an array");
    ++depth_;
    return true;
  }
  bool end_array() override {
    --depth_;
    return true;
  }
  bool key(string_t& name) override {
    if (depth_ != 1 || !object_) return true;
    ours_ = name == field_;
    if (names_++ < kMostFieldsNamed) {
      absl::StrAppend(&shown_, shown_.empty() ? "" : ", ", "\"", Shortened(name), "\"");
    }
    return true;
  }
  bool parse_error(size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    // "[json.exception.parse_error.101] parse error at line 1, column 5: syntax error ...".
    std::string_view reason = error.what();
    for (const std::string_view end : {"] ", ": "}) {
      if (const size_t at = reason.find(end); at != reason.npos)
        reason.remove_prefix(at + end.size());
    }
    error_ = absl::StrCat("byte ", position, ": ", Shortened(reason));
    return false;
  }

  absl::StatusOr<std::string> Take() {
    if (!error_.empty()) return Refused(absl::StrCat("is no JSON at ", error_, kGive));
    if (!object_) return Refused(absl::StrCat("is no JSON object", kGive));
    if (document_.has_value()) return *std::move(document_);
    const std::string what =
        type_.empty() ? "has no field" : absl::StrCat("has ", type_, ", no string, in its field");
    return Refused(absl::StrCat(what, " \"", ShownName(field_), "\"; its fields are ",
                                shown_.empty() ? "none" : shown_,
                                names_ > kMostFieldsNamed ? " and others" : "",
                                "; data.json_lines.field names the document's"));
  }

 private:
  static absl::Status Refused(const std::string& what) { return absl::InvalidArgumentError(what); }
  bool Other(const char* type) {
    if (depth_ == 1 && object_ && ours_) {
      document_.reset();
      type_ = type;
    }
    return true;
  }

  const std::string& field_;
  std::optional<std::string> document_;
  std::string type_;  // of the field, if it is no string
  std::string shown_, error_;
  size_t names_ = 0;
  int64_t depth_ = 0;
  bool object_ = false, ours_ = false;
};

}  // namespace

absl::StatusOr<std::string> JsonDocument(std::string_view line, const std::string& field) {
  if (!IsUtf8Text(line)) {
    return absl::InvalidArgumentError(
        "is not UTF-8, or has a zero byte; convert the file to UTF-8 first (iconv -t UTF-8)");
  }
  DocumentEvents events(field);
  Json::sax_parse(line.begin(), line.end(), &events);
  absl::StatusOr<std::string> document = events.Take();
  if (document.ok() && document->find('\0') != document->npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("its field \"", ShownName(field), "\" has a zero character; remove it"));
  }
  return document;
}

}  // namespace stagecoach
