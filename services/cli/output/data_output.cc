#include "services/cli/output/data_output.h"

#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/utf8.h"
#include "services/cli/output/job_output.h"
#include "services/cli/output/text.h"

namespace stagecoach {
namespace {

// Enough to tell sets apart, and to name one of them by its whole id from JSON.
constexpr size_t kShownDigits = 12;

}  // namespace

std::string DataSetLabel(const v1::DataSet& set) {
  return absl::StrCat("data set ", set.name().empty() ? set.id() : set.name());
}

std::string DataSetTable(const v1::ListDataSetsResponse& sets) {
  Table table({"NAME", "ID", "FILES", "SIZE", "USED", "OWNER", "FIRST FILE", "JOBS"}, {2, 3});
  for (const v1::DataSet& set : sets.data_sets()) {
    table.Add({set.name().empty() ? "-" : set.name(), set.id().substr(0, kShownDigits),
               absl::StrCat(set.files()), FormatBytes(set.bytes()),
               FormatUnixTime(set.used_seconds()), set.owner().empty() ? "-" : set.owner(),
               set.source().empty() ? set.title() : set.source(),
               set.jobs().empty() ? "-" : absl::StrJoin(set.jobs(), ",")});
  }
  return table.ToString();
}

std::string DataSetText(const v1::DataSet& set, const v1::DataManifest& manifest) {
  std::string text = absl::StrCat(
      "id       ", set.id(), "\nname     ", set.name().empty() ? "-" : set.name(), "\nowner    ",
      set.owner().empty() ? "-" : set.owner(), "\ncreated  ", FormatUnixTime(set.created_seconds()),
      "\nused     ", FormatUnixTime(set.used_seconds()), "\nsize     ", FormatBytes(set.bytes()),
      " in ", set.files(), set.files() == 1 ? " file" : " files",
      set.source().empty() ? "" : absl::StrCat(", not copied\nsource   ", set.source()),
      "\njobs     ", set.jobs().empty() ? "-" : absl::StrJoin(set.jobs(), ", "), "\n\n");
  Table table({"SIZE", "FILE"}, {0});
  for (const v1::DataSetFile& file : manifest.files()) {
    table.Add({FormatBytes(file.bytes()), ShownName(file.path())});
  }
  return absl::StrCat(text, table.ToString());
}

std::string DataSetJson(const v1::DataSet& set, const v1::DataManifest& manifest,
                        OutputFormat format) {
  nlohmann::ordered_json json =
      nlohmann::ordered_json::parse(ToJson(set, OutputFormat::kNdjson), nullptr, false);
  nlohmann::ordered_json entries = nlohmann::ordered_json::array();
  for (const v1::DataSetFile& file : manifest.files()) {
    entries.push_back({{"path", file.path()}, {"bytes", absl::StrCat(file.bytes())}});
  }
  json["entries"] = std::move(entries);
  return absl::StrCat(
      json.dump(format == OutputFormat::kNdjson ? -1 : 1, ' ', /*ensure_ascii=*/false,
                nlohmann::ordered_json::error_handler_t::replace),
      "\n");
}

}  // namespace stagecoach
