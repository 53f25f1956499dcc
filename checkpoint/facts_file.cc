#include "checkpoint/facts_file.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "checkpoint/names.h"

namespace stagecoach {
namespace {

using FactsJson = nlohmann::ordered_json;

constexpr int64_t kMostFactsBytes = int64_t{16} << 20;

// Of a member that is not there: nothing.
template <typename Value>
absl::Status TakeList(const FactsJson& json, const char* key, std::vector<Value>* list) {
  const auto at = json.find(key);
  if (at == json.end()) return absl::OkStatus();
  bool fits = at->is_array();
  for (size_t i = 0; fits && i < at->size(); ++i) {
    const FactsJson& value = (*at)[i];
    fits = std::is_same_v<Value, double> ? value.is_number() : value.is_string();
    if (fits) list->push_back(value.get<Value>());
  }
  if (fits) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("\"", key, "\" is no list of ",
                                          std::is_same_v<Value, double> ? "numbers" : "texts"));
}

absl::StatusOr<DataFacts> ParseFacts(const std::string& text) {
  const FactsJson json = FactsJson::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return absl::DataLossError("not a JSON object");
  DataFacts facts;
  RETURN_IF_ERROR(TakeList(json, "classes", &facts.classes));
  RETURN_IF_ERROR(TakeList(json, "mean", &facts.mean));
  RETURN_IF_ERROR(TakeList(json, "deviation", &facts.deviation));
  for (const double deviation : facts.deviation) {
    if (deviation > 0) continue;
    return absl::DataLossError(
        absl::StrCat("\"deviation\" has ", deviation, "; pixels are divided by it: want above 0"));
  }
  return facts;
}

}  // namespace

std::string FormatFacts(const DataFacts& facts) {
  FactsJson json = FactsJson::object();
  if (!facts.classes.empty()) json["classes"] = facts.classes;
  if (!facts.mean.empty()) json["mean"] = facts.mean;
  if (!facts.deviation.empty()) json["deviation"] = facts.deviation;
  return json.dump(2, ' ', false, FactsJson::error_handler_t::replace) + "\n";
}

absl::StatusOr<DataFacts> ReadFacts(FileSystem& file_system, const std::string& folder) {
  const std::string path = JoinPath(folder, kExportFactsFile);
  if (!file_system.Exists(path)) return DataFacts();
  ASSIGN_OR_RETURN(std::unique_ptr<ReadableFile> file, file_system.Open(path));
  if (file->size() > kMostFactsBytes) {
    return absl::DataLossError(absl::StrCat(path, ": ", file->size(), " bytes are over 16 MiB"));
  }
  std::string text(static_cast<size_t>(file->size()), '\0');
  RETURN_IF_ERROR(file->Read(0, std::as_writable_bytes(std::span(text))));
  return Annotate(ParseFacts(text), path);
}

}  // namespace stagecoach
