#include "checkpoint/manifest.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <tuple>

#include "absl/strings/charconv.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/errors/check.h"
#include "base/errors/status.h"
#include "base/files/hash.h"
#include "checkpoint/names.h"
#include "checkpoint/safetensors/safetensors_header.h"

namespace stagecoach {
namespace {

using Json = nlohmann::json;

constexpr char kDigestMember[] = ",\"zz_sha256\":\"";
constexpr size_t kDigestMemberBytes = sizeof(kDigestMember) - 1;
constexpr size_t kDigestDigits = 64;
constexpr size_t kTrailerBytes = kDigestMemberBytes + kDigestDigits + 2;  // ends with "}
constexpr int64_t kMaxManifestBytes = int64_t{64} << 20;
constexpr int kMaxDepth = 8;

// As printf's %a. All not-a-numbers are one: their bits carry nothing.
std::string FormatHexFloat(double value) {
  return std::isnan(value) ? "nan" : absl::StrFormat("%a", value);
}

absl::StatusOr<double> ParseHexFloat(const std::string& text) {
  std::string_view rest = text;
  const bool negative = rest.starts_with('-');
  if (negative) rest.remove_prefix(1);
  const bool hexadecimal = rest.starts_with("0x");
  if (hexadecimal) rest.remove_prefix(2);
  double value = 0;
  const auto [end, error] =
      absl::from_chars(rest.data(), rest.data() + rest.size(), value,
                       hexadecimal ? absl::chars_format::hex : absl::chars_format::general);
  if (error != std::errc() || end != rest.data() + rest.size() ||
      (!hexadecimal && std::isfinite(value))) {
    return absl::DataLossError("not a hexadecimal float");
  }
  return negative ? -value : value;
}

Json TensorToJson(const ShardTensor& tensor) {
  return {{"data_offsets", {tensor.entry.begin, tensor.entry.end}},
          {"dtype", DTypeName(tensor.entry.dtype)},
          {"name", tensor.entry.name},
          {"sha256", tensor.sha256},
          {"shape", tensor.entry.shape.extents()}};
}

Json ShardToJson(const ShardInfo& shard) {
  Json tensors = Json::array();
  for (const ShardTensor& tensor : shard.tensors) tensors.push_back(TensorToJson(tensor));
  return {{"bytes", shard.bytes},
          {"file", shard.file},
          {"sha256", shard.sha256},
          {"tensors", std::move(tensors)}};
}

Json StateToJson(const TrainState& state) {
  return {{"batch_size", state.batch_size},
          {"consecutive_nonfinite", state.consecutive_nonfinite},
          {"last_loss", FormatHexFloat(state.last_loss)},
          {"micro_batches", state.micro_batches},
          {"optimizer_start", state.optimizer_start},
          {"seed", state.seed},
          {"sequences_consumed", state.sequences_consumed},
          {"skipped_steps", state.skipped_steps},
          {"step", state.step}};
}

std::vector<std::string> HexFloats(const std::vector<double>& values) {
  std::vector<std::string> texts;
  for (const double value : values) texts.push_back(FormatHexFloat(value));
  return texts;
}

Json DatasetToJson(const Manifest& manifest) {
  Json json = {{"bytes", manifest.dataset_bytes}, {"sha256", manifest.dataset_sha256}};
  // Left out where there is nothing to say, as below.
  const DataFacts& facts = manifest.facts;
  if (!facts.classes.empty()) json["classes"] = facts.classes;
  if (!facts.mean.empty()) json["mean"] = HexFloats(facts.mean);
  if (!facts.deviation.empty()) json["deviation"] = HexFloats(facts.deviation);
  return json;
}

// Typed access to the members of one object. The first thing that is missing or of another type is
// kept; later reads give zeros, so that callers check once.
class Members {
 public:
  Members(const Json& json, absl::Status* status) : json_(json), status_(status) {
    if (!json.is_object()) Fail("is not an object");
  }

  std::string Text(const char* key) const {
    const Json* value = Find(key, &Json::is_string);
    return value == nullptr ? "" : value->get<std::string>();
  }
  std::string TextOrNone(const char* key) const { return json_.contains(key) ? Text(key) : ""; }
  uint64_t Unsigned(const char* key) const {
    const Json* value = Find(key, &Json::is_number_unsigned);
    return value == nullptr ? 0 : value->get<uint64_t>();
  }
  int64_t Integer(const char* key) const {
    const Json* value = Find(key, &Json::is_number_integer);
    return value == nullptr ? 0 : value->get<int64_t>();
  }
  const Json& Array(const char* key) const {
    static const Json* const kEmpty = new Json(Json::array());
    const Json* value = Find(key, &Json::is_array);
    return value == nullptr ? *kEmpty : *value;
  }
  std::vector<int64_t> Integers(const char* key) const {
    std::vector<int64_t> numbers;
    for (const Json& number : Array(key)) {
      if (!number.is_number_integer()) Fail(absl::StrCat("\"", key, "\" holds no integers"));
      numbers.push_back(number.is_number_integer() ? number.get<int64_t>() : 0);
    }
    return numbers;
  }
  std::vector<std::string> TextsOrNone(const char* key) const {
    std::vector<std::string> texts;
    if (!json_.contains(key)) return texts;
    for (const Json& text : Array(key)) {
      if (!text.is_string()) Fail(absl::StrCat("\"", key, "\" holds no texts"));
      texts.push_back(text.is_string() ? text.get<std::string>() : "");
    }
    return texts;
  }
  std::vector<double> HexFloatsOrNone(const char* key) const {
    std::vector<double> values;
    for (const std::string& text : TextsOrNone(key)) {
      const absl::StatusOr<double> value = ParseHexFloat(text);
      if (!value.ok()) Fail(absl::StrCat("\"", key, "\": ", value.status().message()));
      values.push_back(value.value_or(0));
    }
    return values;
  }
  Members Object(const char* key) const {
    static const Json* const kEmpty = new Json(Json::object());
    const Json* value = Find(key, &Json::is_object);
    return Members(value == nullptr ? *kEmpty : *value, status_);
  }
  void Fail(const std::string& what) const {
    if (status_->ok()) *status_ = absl::DataLossError(absl::StrCat("manifest: ", what));
  }

 private:
  const Json* Find(const char* key, bool (Json::*is_type)() const noexcept) const {
    const auto at = json_.find(key);
    if (at != json_.end() && ((*at).*is_type)()) return &*at;
    Fail(absl::StrCat("\"", key, "\" is missing or of another type"));
    return nullptr;
  }

  const Json& json_;
  absl::Status* const status_;
};

absl::StatusOr<ShardTensor> TensorFromJson(const Json& json) {
  absl::Status status;
  const Members members(json, &status);
  ShardTensor tensor;
  tensor.entry.name = members.Text("name");
  tensor.sha256 = members.Text("sha256");
  tensor.entry.shape = Shape(members.Integers("shape"));
  const std::vector<int64_t> offsets = members.Integers("data_offsets");
  absl::StatusOr<DType> dtype = ParseDType(members.Text("dtype"));
  RETURN_IF_ERROR(status);
  RETURN_IF_ERROR(CheckTensorName(tensor.entry.name));
  if (!dtype.ok()) return dtype.status();
  tensor.entry.dtype = *dtype;
  ASSIGN_OR_RETURN(const int64_t bytes, TensorBytes(*dtype, tensor.entry.shape));
  if (offsets.size() != 2 || offsets[0] < 0 || offsets[1] < offsets[0] ||
      offsets[1] - offsets[0] != bytes) {
    return absl::DataLossError(
        absl::StrCat("manifest: data_offsets of ", tensor.entry.name, " do not hold its shape"));
  }
  tensor.entry.begin = offsets[0];
  tensor.entry.end = offsets[1];
  return tensor;
}

absl::StatusOr<ShardInfo> ShardFromJson(const Json& json) {
  absl::Status status;
  const Members members(json, &status);
  ShardInfo shard{.file = members.Text("file"),
                  .bytes = members.Integer("bytes"),
                  .sha256 = members.Text("sha256")};
  RETURN_IF_ERROR(status);
  RETURN_IF_ERROR(CheckShardFile(shard.file));
  for (const Json& tensor : members.Array("tensors")) {
    ASSIGN_OR_RETURN(ShardTensor parsed, TensorFromJson(tensor));
    shard.tensors.push_back(std::move(parsed));
  }
  RETURN_IF_ERROR(status);
  return shard;
}

absl::StatusOr<Manifest> ManifestFromJson(const Json& json) {
  absl::Status status;
  const Members members(json, &status);
  const Members dataset = members.Object("dataset");
  const Members state = members.Object("state");
  Manifest manifest{.format_version = static_cast<int>(members.Integer("format_version")),
                    .job = members.Text("job"),
                    .model_sha256 = members.Text("model_sha256"),
                    .dataset_sha256 = dataset.Text("sha256"),
                    .dataset_bytes = dataset.Integer("bytes"),
                    .base_sha256 = members.TextOrNone("base_sha256"),
                    .facts = {.classes = dataset.TextsOrNone("classes"),
                              .mean = dataset.HexFloatsOrNone("mean"),
                              .deviation = dataset.HexFloatsOrNone("deviation")},
                    .term = members.Unsigned("term"),
                    .stages = static_cast<int>(members.Integer("stages")),
                    .fingerprint = members.Text("fingerprint")};
  manifest.state = {.step = state.Unsigned("step"),
                    .seed = state.Unsigned("seed"),
                    .batch_size = state.Integer("batch_size"),
                    .micro_batches = state.Integer("micro_batches"),
                    .sequences_consumed = state.Unsigned("sequences_consumed"),
                    .skipped_steps = state.Unsigned("skipped_steps"),
                    .optimizer_start = state.Unsigned("optimizer_start"),
                    .consecutive_nonfinite = state.Integer("consecutive_nonfinite")};
  const std::string loss = state.Text("last_loss");
  RETURN_IF_ERROR(status);
  ASSIGN_OR_RETURN(manifest.state.last_loss, ParseHexFloat(loss));
  if (manifest.state.skipped_steps > manifest.state.step ||
      manifest.state.optimizer_start > manifest.state.step - manifest.state.skipped_steps) {
    return absl::DataLossError(absl::StrCat(
        "manifest: ", manifest.state.skipped_steps, " skipped steps and optimizer_start ",
        manifest.state.optimizer_start, " are more than its ", manifest.state.step, " steps"));
  }
  RETURN_IF_ERROR(CheckJobName(manifest.job));
  for (const Json& shard : members.Array("shards")) {
    ASSIGN_OR_RETURN(ShardInfo parsed, ShardFromJson(shard));
    if (!manifest.shards.empty() && parsed.file <= manifest.shards.back().file) {
      return absl::DataLossError("manifest: shards are not sorted by unique file names");
    }
    manifest.shards.push_back(std::move(parsed));
  }
  RETURN_IF_ERROR(status);
  return manifest;
}

// Nesting outside of strings, before a tree is built: a tree of a hostile text would need a hundred
// times its bytes.
bool TooDeep(std::string_view text) {
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (quoted) {
      if (text[i] == '\\')
        ++i;
      else if (text[i] == '"')
        quoted = false;
    } else if (text[i] == '"') {
      quoted = true;
    } else if (text[i] == '{' || text[i] == '[') {
      if (++depth > kMaxDepth) return true;
    } else if (text[i] == '}' || text[i] == ']') {
      --depth;
    }
  }
  return false;
}

absl::Status CheckDigest(std::string_view text) {
  if (text.size() < kTrailerBytes || !text.ends_with("\"}")) {
    return absl::DataLossError("manifest: cut short, its digest is missing");
  }
  const std::string_view trailer = text.substr(text.size() - kTrailerBytes);
  const std::string_view body = text.substr(0, text.size() - kTrailerBytes);
  if (!trailer.starts_with(kDigestMember) ||
      trailer.substr(kDigestMemberBytes, kDigestDigits) != Sha256Hex(std::string(body))) {
    return absl::DataLossError("manifest: its bytes do not match its own SHA-256");
  }
  return absl::OkStatus();
}

}  // namespace

bool operator==(const TrainState& a, const TrainState& b) {
  const bool same_loss =
      a.last_loss == b.last_loss || (std::isnan(a.last_loss) && std::isnan(b.last_loss));
  const auto rest = [](const TrainState& state) {
    return std::tie(state.step, state.seed, state.batch_size, state.micro_batches,
                    state.sequences_consumed, state.skipped_steps, state.optimizer_start,
                    state.consecutive_nonfinite);
  };
  return same_loss && rest(a) == rest(b);
}

uint64_t OptimizerSteps(const TrainState& state) {
  CHECK_LE(state.skipped_steps, state.step);
  CHECK_LE(state.optimizer_start, state.step - state.skipped_steps);
  return state.step - state.skipped_steps - state.optimizer_start;
}

std::string FormatManifest(const Manifest& manifest) {
  Json shards = Json::array();
  for (const ShardInfo& shard : manifest.shards) shards.push_back(ShardToJson(shard));
  Json json = {{"dataset", DatasetToJson(manifest)},
               {"fingerprint", manifest.fingerprint},
               {"format_version", manifest.format_version},
               {"job", manifest.job},
               {"model_sha256", manifest.model_sha256},
               {"shards", std::move(shards)},
               {"stages", manifest.stages},
               {"state", StateToJson(manifest.state)},
               {"term", manifest.term}};
  if (!manifest.base_sha256.empty()) json["base_sha256"] = manifest.base_sha256;
  std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  text.pop_back();  // the closing brace goes behind the digest
  return absl::StrCat(text, kDigestMember, Sha256Hex(text), "\"}");
}

absl::StatusOr<Manifest> ParseManifest(std::string_view text) {
  RETURN_IF_ERROR(CheckDigest(text));
  if (TooDeep(text)) return absl::DataLossError("manifest: nested too deep");
  const Json json = Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return absl::DataLossError("manifest: not a JSON object");
  // Before anything else is looked at: another version may have other members.
  const auto version = json.find("format_version");
  if (version != json.end() && version->is_number_integer() && *version != kManifestFormatVersion) {
    return absl::FailedPreconditionError(absl::StrCat("manifest: format_version ", version->dump(),
                                                      ", this program reads version ",
                                                      kManifestFormatVersion));
  }
  absl::StatusOr<Manifest> manifest = ManifestFromJson(json);
  if (!manifest.ok()) return absl::DataLossError(manifest.status().message());
  // One text per manifest: this refuses double and unknown members and odd spellings of numbers.
  if (FormatManifest(*manifest) != text) {
    return absl::DataLossError("manifest: not in canonical form");
  }
  return manifest;
}

absl::StatusOr<Manifest> ReadManifestFile(ReadableFiles& file_system, const std::string& folder) {
  const std::string path = JoinPath(folder, kManifestFile);
  ASSIGN_OR_RETURN(std::unique_ptr<ReadableFile> file, file_system.Open(path));
  if (file->size() > kMaxManifestBytes) {
    return absl::DataLossError(absl::StrCat(path, ": ", file->size(), " bytes are over 64 MiB"));
  }
  std::string text(static_cast<size_t>(file->size()), '\0');
  RETURN_IF_ERROR(file->Read(0, std::as_writable_bytes(std::span(text))));
  return Annotate(ParseManifest(text), path);
}

}  // namespace stagecoach
