#include "checkpoint/weight_index.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/errors/status.h"
#include "base/files/file_kind.h"
#include "base/utf8.h"
#include "checkpoint/names.h"
#include "checkpoint/safetensors/safetensors_header.h"

namespace stagecoach {
namespace {

using Json = nlohmann::json;

constexpr char kWeightMap[] = "weight_map";

// Keeps weight_map and skips everything else. No tree of hostile text is built.
class IndexEvents final : public Json::json_sax_t {
 public:
  explicit IndexEvents(WeightIndex* index) : index_(index) {}

  absl::Status Finish() const {
    if (!status_.ok()) return status_;
    if (seen_map_ && !index_->files.empty()) return absl::OkStatus();
    return absl::DataLossError(
        absl::StrCat("no ", kWeightMap, ", which names the file of each tensor"));
  }

  bool start_object(size_t) override {
    if (in_map_) return Fail("is an object, want a file's name");
    in_map_ = ++depth_ == 2 && map_is_next_;
    return true;
  }
  bool end_object() override {
    --depth_;
    in_map_ = false;
    return true;
  }
  bool start_array(size_t) override {
    if (!Value("an array")) return false;
    ++depth_;
    return true;
  }
  bool end_array() override {
    --depth_;
    return true;
  }
  bool key(std::string& text) override {
    if (in_map_) return TensorKey(text);
    if (depth_ != 1) return true;
    map_is_next_ = text == kWeightMap;
    if (!map_is_next_) return true;
    if (seen_map_) return Fail("given twice");
    return seen_map_ = true;
  }
  bool string(std::string& text) override {
    if (!in_map_) return Value("a text");
    if (!CheckShardFile(text).ok()) {
      return Fail(absl::StrCat("\"", ShownName(text), "\" is no file's name in the same folder"));
    }
    index_->files[tensor_] = text;
    return true;
  }
  bool null() override { return Value("null"); }
  bool boolean(bool) override { return Value("a truth value"); }
  bool number_integer(int64_t) override { return Value("a number"); }
  bool number_unsigned(uint64_t) override { return Value("a number"); }
  bool number_float(double, const std::string&) override { return Value("a number"); }
  bool binary(Json::binary_t&) override { return Value("bytes"); }
  bool parse_error(size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    in_map_ = map_is_next_ = false;
    return Fail(absl::StrCat("not JSON at byte ", position));
  }

 private:
  bool TensorKey(const std::string& text) {
    tensor_ = text;
    const absl::Status legal = CheckTensorName(text);
    if (!legal.ok()) return Fail(std::string(legal.message()));
    if (index_->files.contains(text)) return Fail("is named twice");
    if (index_->files.size() >= kMaxSafetensorsTensors) {
      return Fail(absl::StrCat("is over ", kMaxSafetensorsTensors, " tensors"));
    }
    return true;
  }

  // A value outside of the map is skipped, unless it stands for the map.
  bool Value(const char* what) {
    const bool of_map = in_map_ || (depth_ == 1 && map_is_next_);
    if (!of_map) return true;
    return Fail(absl::StrCat("is ", what, ", want ", in_map_ ? "a file's name" : "an object"));
  }

  bool Fail(const std::string& why) {
    if (!status_.ok()) return false;
    const std::string where = in_map_        ? absl::StrCat("tensor ", ShownName(tensor_), " ")
                              : map_is_next_ ? absl::StrCat(kWeightMap, " ")
                                             : "";
    status_ = absl::DataLossError(where + why);
    return false;
  }

  WeightIndex* const index_;
  absl::Status status_;
  int depth_ = 0;
  bool map_is_next_ = false, seen_map_ = false, in_map_ = false;
  std::string tensor_;
};

}  // namespace

absl::StatusOr<WeightIndex> ParseWeightIndex(std::string_view text) {
  constexpr char kWanted[] = "the index of sharded weights";
  if (static_cast<int64_t>(text.size()) > kMaxWeightIndexBytes) {
    return absl::DataLossError(absl::StrCat(text.size(), " bytes are over 16 MiB"));
  }
  if (text.empty() || text.front() != '{') {
    const std::string other = OtherKindText(text, kWanted);
    return absl::DataLossError(other.empty() ? absl::StrCat("not ", kWanted) : other);
  }
  WeightIndex index;
  IndexEvents events(&index);
  const bool parsed = Json::sax_parse(text.begin(), text.end(), &events);
  RETURN_IF_ERROR(events.Finish());
  if (!parsed) return absl::DataLossError("not JSON");
  return index;
}

std::string FormatWeightIndex(const WeightIndex& index) {
  const Json json = {{"metadata", {{"total_size", index.total_bytes}}}, {kWeightMap, index.files}};
  return json.dump(2) + "\n";
}

std::string WeightShardFile(int64_t shard, int64_t shards) {
  if (shards == 1) return kExportWeightsFile;
  return absl::StrFormat("model-%05d-of-%05d.safetensors", shard + 1, shards);
}

}  // namespace stagecoach
