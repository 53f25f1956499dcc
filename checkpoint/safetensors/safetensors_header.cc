#include "checkpoint/safetensors/safetensors_header.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/errors/status.h"

namespace stagecoach {
namespace {

using Json = nlohmann::json;

constexpr char kMetadataKey[] = "__metadata__";

absl::StatusOr<std::string> Quote(const std::string& text) {
  // Without an exception: bytes that are no UTF-8 are replaced in one text and dropped in the
  // other.
  const Json value(text);
  const std::string quoted = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (quoted != value.dump(-1, ' ', false, Json::error_handler_t::ignore)) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", absl::CHexEscape(text.substr(0, 80)), "\" is not UTF-8"));
  }
  return quoted;
}

}  // namespace

absl::Status CheckTensorName(const std::string& name) {
  const bool control =
      std::any_of(name.begin(), name.end(), [](char c) { return c >= 0 && c < 0x20; });
  if (name.empty() || name.size() > kMaxTensorNameBytes || control || name == kMetadataKey) {
    return absl::InvalidArgumentError(
        absl::StrCat("tensor name \"", absl::CHexEscape(name.substr(0, 80)), "\" of ", name.size(),
                     " bytes: want 1 to ", kMaxTensorNameBytes,
                     " bytes without control characters, and not ", kMetadataKey));
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> TensorBytes(DType dtype, const Shape& shape) {
  ASSIGN_OR_RETURN(const int64_t elements, CheckedElements(shape.extents()));
  int64_t bytes = 0;
  if (__builtin_mul_overflow(elements, DTypeSize(dtype), &bytes)) {
    return absl::InvalidArgumentError(absl::StrCat("bytes of ", elements, " elements overflow"));
  }
  return bytes;
}

absl::StatusOr<std::string> FormatSafetensorsHeader(std::span<const TensorEntry> tensors,
                                                    const Metadata& metadata) {
  if (tensors.size() > kMaxSafetensorsTensors) {
    return absl::InvalidArgumentError(
        absl::StrCat(tensors.size(), " tensors, want at most ", kMaxSafetensorsTensors));
  }
  std::vector<std::string> members;
  if (!metadata.empty()) {
    std::vector<std::string> pairs;
    for (const auto& [key, value] : metadata) {
      ASSIGN_OR_RETURN(const std::string quoted_key, Quote(key));
      ASSIGN_OR_RETURN(const std::string quoted_value, Quote(value));
      pairs.push_back(absl::StrCat(quoted_key, ":", quoted_value));
    }
    members.push_back(absl::StrCat("\"", kMetadataKey, "\":{", absl::StrJoin(pairs, ","), "}"));
  }
  std::set<std::string> names;
  for (const TensorEntry& tensor : tensors) {
    RETURN_IF_ERROR(CheckTensorName(tensor.name));
    if (!names.insert(tensor.name).second) {
      return absl::InvalidArgumentError(absl::StrCat("tensor \"", tensor.name, "\" given twice"));
    }
    ASSIGN_OR_RETURN(const std::string name, Quote(tensor.name));
    members.push_back(absl::StrCat(name, ":{\"dtype\":\"", DTypeName(tensor.dtype),
                                   "\",\"shape\":[", absl::StrJoin(tensor.shape.extents(), ","),
                                   "],\"data_offsets\":[", tensor.begin, ",", tensor.end, "]}"));
  }
  std::string header = absl::StrCat("{", absl::StrJoin(members, ","), "}");
  header.resize((header.size() + 7) / 8 * 8, ' ');
  if (static_cast<int64_t>(header.size()) > kMaxSafetensorsHeaderBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "header of ", header.size(), " bytes, want at most ", kMaxSafetensorsHeaderBytes));
  }
  return header;
}

}  // namespace stagecoach
