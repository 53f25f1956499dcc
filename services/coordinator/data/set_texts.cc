#include "services/coordinator/data/set_texts.h"

#include <google/protobuf/util/json_util.h>

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/errors/check.h"
#include "base/files/hash.h"
#include "base/job_name.h"
#include "plan/data/data_set_path.h"

namespace stagecoach {

std::string SetId(const std::string& key, const std::string& manifest_sha256) {
  return Sha256Hex(absl::StrCat(key, "\n", manifest_sha256));
}

v1::DataSet InfoOf(const std::string& id, const std::string& owner,
                   const CheckedManifest& manifest) {
  v1::DataSet set;
  set.set_id(id);
  set.set_owner(owner);
  set.set_title(manifest.manifest().files(0).path());
  set.set_source(manifest.source());
  set.set_files(manifest.manifest().files_size());
  set.set_bytes(manifest.bytes());
  return set;
}

std::string InfoText(const v1::DataSet& set) {
  v1::DataSet kept = set;
  kept.clear_name();
  kept.clear_jobs();
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  std::string text;
  const auto status = google::protobuf::util::MessageToJsonString(kept, &text, options);
  CHECK(status.ok()) << "a data set of checked texts can be printed: " << status.ToString();
  return text;
}

absl::StatusOr<v1::DataSet> ParseInfo(const std::string& text, const std::string& id,
                                      const std::string& place) {
  v1::DataSet set;
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;  // of a newer version
  if (!google::protobuf::util::JsonStringToMessage(text, &set, options).ok() || set.id() != id) {
    return absl::DataLossError(absl::StrCat(place, ": is not the set's info"));
  }
  return set;
}

std::string NamesText(const DataShelf::Names& names) {
  std::string text;
  for (const auto& [name, id] : names) absl::StrAppend(&text, name, " ", id, "\n");
  return text;
}

absl::StatusOr<DataShelf::Names> ParseNames(const std::string& text, const std::string& place) {
  DataShelf::Names names;
  const std::vector<std::string> lines = absl::StrSplit(text, '\n', absl::SkipEmpty());
  for (const std::string& line : lines) {
    const std::pair<std::string, std::string> words = absl::StrSplit(line, absl::MaxSplits(' ', 1));
    if (!IsJobName(words.first) || !IsDigest(words.second)) {
      return absl::DataLossError(absl::StrCat(place, ": want lines \"NAME ID\""));
    }
    names.insert(words);
  }
  return names;
}

}  // namespace stagecoach
