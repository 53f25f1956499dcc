// JsonField: a value of a JSON file and its place there, "model.merges[3]", for errors.
// Ownership: borrows the document.  Threads: immutable.
// Errors:    INVALID_ARGUMENT naming the place, the value and the remedy.
#ifndef STAGECOACH_BASE_JSON_JSON_FIELD_H_
#define STAGECOACH_BASE_JSON_JSON_FIELD_H_

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace stagecoach {

// A document of objects and arrays within each other up to a depth. Errors name the line.
absl::StatusOr<nlohmann::json> ParseJsonDocument(std::string_view bytes);

class JsonField {
 public:
  explicit JsonField(const nlohmann::json* value, std::string path = "")
      : value_(value), path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  const nlohmann::json* value() const { return value_; }
  // Not there, or null.
  bool missing() const { return value_ == nullptr || value_->is_null(); }
  bool is_array() const { return value_ != nullptr && value_->is_array(); }
  bool is_object() const { return value_ != nullptr && value_->is_object(); }
  bool is_text() const { return value_ != nullptr && value_->is_string(); }

  JsonField Of(const std::string& name) const;  // missing if this is no object, or lacks it
  JsonField At(size_t index) const;             // of an array

  // With `otherwise`: what a missing one says.
  absl::StatusOr<std::string> Text() const;
  absl::StatusOr<std::string> Text(const std::string& otherwise) const;
  absl::StatusOr<bool> Flag() const;
  absl::StatusOr<bool> Flag(bool otherwise) const;
  absl::StatusOr<int64_t> Whole(int64_t low, int64_t high) const;
  absl::StatusOr<int64_t> Whole(int64_t low, int64_t high, int64_t otherwise) const;
  absl::StatusOr<double> Number() const;
  absl::StatusOr<double> Number(double otherwise) const;
  // The items of an array; of a missing one none.
  absl::StatusOr<std::vector<JsonField>> Items() const;

  // The field "type" of an object.
  absl::StatusOr<std::string> Type() const;

  absl::Status Refused(const std::string& remedy) const;

 private:
  std::string Shown() const;

  const nlohmann::json* value_;
  std::string path_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_BASE_JSON_JSON_FIELD_H_
