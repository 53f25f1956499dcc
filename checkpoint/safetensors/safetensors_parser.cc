// The strict reader of safetensors headers. It takes the JSON as events, so that limits hold while
// parsing and no tree of hostile input is ever built.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "checkpoint/safetensors/safetensors_header.h"

namespace stagecoach {
namespace {

using Json = nlohmann::json;

std::string ShownText(const std::string& text) {
  return absl::StrCat("\"", absl::CHexEscape(text.substr(0, 80)), "\"");
}

// Events of {"name":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"__metadata__":{...}}.
class HeaderEvents final : public Json::json_sax_t {
 public:
  HeaderEvents(std::vector<TensorEntry>* tensors, Metadata* metadata)
      : tensors_(tensors), metadata_(metadata) {}

  const absl::Status& status() const { return status_; }

  bool start_object(size_t) override {
    switch (place_) {
      case Place::kStart:
        place_ = Place::kTop;
        return true;
      case Place::kTensorValue:
        place_ = Place::kTensor;
        return true;
      case Place::kMetadataValue:
        place_ = Place::kMetadata;
        return true;
      default:
        return Unexpected("an object");
    }
  }

  bool key(std::string& text) override {
    switch (place_) {
      case Place::kTop:
        return TopKey(text);
      case Place::kTensor:
        return TensorKey(text);
      case Place::kMetadata:
        metadata_key_ = text;
        return metadata_->count(text) == 0 || Fail("given twice");
      default:
        return Unexpected("a key");
    }
  }

  bool string(std::string& text) override {
    if (place_ == Place::kMetadata) {
      (*metadata_)[metadata_key_] = text;
      return true;
    }
    if (place_ != Place::kTensor || field_ != Field::kDtype) return Unexpected("a string");
    absl::StatusOr<DType> dtype = ParseDType(text);
    if (!dtype.ok()) {
      return Fail("dtype " + ShownText(text) +
                  " is not one this program holds (F32, F16, BF16, F64, I64, I32, U8); write the "
                  "file without it");
    }
    entry_.dtype = *dtype;
    field_ = Field::kNone;
    return true;
  }

  bool start_array(size_t) override {
    const bool wanted =
        place_ == Place::kTensor && (field_ == Field::kShape || field_ == Field::kOffsets);
    if (!wanted) return Unexpected("an array");
    place_ = Place::kArray;
    return true;
  }

  bool number_unsigned(uint64_t number) override {
    if (place_ != Place::kArray) return Unexpected("a number");
    if (number > static_cast<uint64_t>(INT64_MAX)) {
      return Fail(absl::StrCat("number ", number, " is over 2^63 - 1"));
    }
    const size_t limit = field_ == Field::kShape ? Shape::kMaxRank : 2;
    if (numbers_.size() >= limit) {
      return Fail(absl::StrCat(field_ == Field::kShape ? "shape" : "data_offsets", " has over ",
                               limit, " numbers"));
    }
    numbers_.push_back(static_cast<int64_t>(number));
    return true;
  }

  bool end_array() override {
    if (field_ == Field::kShape) {
      entry_.shape = Shape(std::move(numbers_));
    } else {
      if (numbers_.size() != 2) return Fail("data_offsets is not two numbers");
      entry_.begin = numbers_[0];
      entry_.end = numbers_[1];
    }
    numbers_.clear();
    field_ = Field::kNone;
    place_ = Place::kTensor;
    return true;
  }

  bool end_object() override {
    if (place_ == Place::kTensor && !FinishTensor()) return false;
    place_ = place_ == Place::kTop ? Place::kEnd : Place::kTop;
    return true;
  }

  bool null() override {
    if (place_ != Place::kMetadataValue) return Unexpected("null");
    place_ = Place::kTop;  // none, as the format's library reads it
    return true;
  }
  bool boolean(bool) override { return Unexpected("a truth value"); }
  bool number_integer(int64_t) override { return Unexpected("a negative number"); }
  bool number_float(double, const std::string&) override {
    return Unexpected("a number that is no integer below 2^64");
  }
  bool binary(Json::binary_t&) override { return Unexpected("binary"); }
  bool parse_error(size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    return Fail(absl::StrCat("not JSON at byte ", position));
  }

 private:
  enum class Place { kStart, kTop, kTensorValue, kTensor, kArray, kMetadataValue, kMetadata, kEnd };
  enum class Field { kNone, kDtype, kShape, kOffsets };

  bool TopKey(const std::string& text) {
    if (text == "__metadata__") {
      if (seen_metadata_) return Fail("__metadata__ given twice");
      seen_metadata_ = true;
      place_ = Place::kMetadataValue;
      return true;
    }
    absl::Status legal = CheckTensorName(text);
    if (!legal.ok()) return Fail(std::string(legal.message()));
    if (!names_.insert(text).second) return Fail("tensor " + ShownText(text) + " given twice");
    if (names_.size() > kMaxSafetensorsTensors) {
      return Fail(absl::StrCat("over ", kMaxSafetensorsTensors, " tensors"));
    }
    entry_ = TensorEntry{.name = text};
    seen_dtype_ = seen_shape_ = seen_offsets_ = false;
    place_ = Place::kTensorValue;
    return true;
  }

  bool TensorKey(const std::string& text) {
    bool* seen = nullptr;
    if (text == "dtype") {
      field_ = Field::kDtype;
      seen = &seen_dtype_;
    } else if (text == "shape") {
      field_ = Field::kShape;
      seen = &seen_shape_;
    } else if (text == "data_offsets") {
      field_ = Field::kOffsets;
      seen = &seen_offsets_;
    } else {
      return Fail("unknown key " + ShownText(text));
    }
    if (*seen) return Fail("key " + ShownText(text) + " given twice");
    *seen = true;
    return true;
  }

  bool FinishTensor() {
    if (!seen_dtype_ || !seen_shape_ || !seen_offsets_) {
      return Fail("dtype, shape or data_offsets is missing");
    }
    absl::StatusOr<int64_t> bytes = TensorBytes(entry_.dtype, entry_.shape);
    if (!bytes.ok()) return Fail(std::string(bytes.status().message()));
    if (entry_.end < entry_.begin || entry_.bytes() != *bytes) {
      return Fail(absl::StrCat("data_offsets [", entry_.begin, ", ", entry_.end, "] do not hold ",
                               DTypeName(entry_.dtype), " ", entry_.shape.ToString()));
    }
    tensors_->push_back(std::move(entry_));
    entry_ = TensorEntry{};
    return true;
  }

  bool Unexpected(const char* what) { return Fail(absl::StrCat("did not expect ", what)); }

  bool Fail(const std::string& message) {
    if (!status_.ok()) return false;
    status_ = absl::DataLossError(absl::StrCat("safetensors header: ", Where(), message));
    return false;
  }

  std::string Where() const {
    if (place_ == Place::kMetadataValue || place_ == Place::kMetadata) {
      const std::string key =
          metadata_key_.empty() ? "" : absl::StrCat(" key ", ShownText(metadata_key_));
      return absl::StrCat("__metadata__", key, ": ");
    }
    return entry_.name.empty() ? "" : absl::StrCat("tensor ", ShownText(entry_.name), ": ");
  }

  std::vector<TensorEntry>* const tensors_;
  Metadata* const metadata_;
  absl::Status status_;
  Place place_ = Place::kStart;
  Field field_ = Field::kNone;
  TensorEntry entry_;
  std::vector<int64_t> numbers_;
  std::string metadata_key_;
  std::set<std::string> names_;
  bool seen_metadata_ = false, seen_dtype_ = false, seen_shape_ = false, seen_offsets_ = false;
};

// Every byte of the buffer belongs to exactly one tensor.
absl::Status CheckTiling(const std::vector<TensorEntry>& tensors, int64_t buffer_bytes) {
  int64_t covered = 0;
  for (const TensorEntry& tensor : tensors) {
    if (tensor.begin != covered) {
      return absl::DataLossError(absl::StrCat("safetensors header: tensor ", ShownText(tensor.name),
                                              " begins at ", tensor.begin,
                                              ", the one before ends at ", covered));
    }
    covered = tensor.end;
  }
  if (covered != buffer_bytes) {
    return absl::DataLossError(absl::StrCat("safetensors header: tensors end at ", covered,
                                            ", the buffer has ", buffer_bytes, " bytes"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ParseSafetensorsHeader(std::string_view header, int64_t buffer_bytes,
                                    std::vector<TensorEntry>* tensors, Metadata* metadata) {
  tensors->clear();
  metadata->clear();
  if (static_cast<int64_t>(header.size()) > kMaxSafetensorsHeaderBytes) {
    return absl::DataLossError(
        absl::StrCat("safetensors header: ", header.size(), " bytes are over 16 MiB"));
  }
  const size_t last = header.find_last_not_of(' ');
  // The JSON reader would skip white space and a byte order mark in front, and takes a zero byte
  // for the end of the text.
  if (last == std::string_view::npos || header.front() != '{' || header[last] != '}' ||
      header.find('\0') != std::string_view::npos) {
    return absl::DataLossError("safetensors header: not one JSON object padded with spaces");
  }
  HeaderEvents events(tensors, metadata);
  const std::string_view text = header.substr(0, last + 1);
  const bool parsed = Json::sax_parse(text.begin(), text.end(), &events);
  if (!events.status().ok()) return events.status();
  if (!parsed) return absl::DataLossError("safetensors header: not JSON");
  std::sort(tensors->begin(), tensors->end(), [](const TensorEntry& a, const TensorEntry& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  return CheckTiling(*tensors, buffer_bytes);
}

}  // namespace stagecoach
