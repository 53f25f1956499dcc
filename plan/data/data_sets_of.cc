#include "plan/data/data_sets_of.h"

#include <set>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/errors/field_check.h"
#include "base/utf8.h"
#include "plan/data/bucket_path.h"
#include "plan/data/data_set_path.h"
#include "plan/job/data_kinds.h"

namespace stagecoach {
namespace {

std::vector<ClusterPath> PathsOf(const JobSpec& spec, bool (*is_one)(std::string_view path)) {
  std::vector<ClusterPath> paths;
  if (DataKinds().Find(spec.data.kind).ok()) {
    for (const DataFile& file : DataFiles(spec.data)) {
      // A job that writes reads the tokenizer alone. What it was trained with need not be there.
      if (spec.write.has_value() && file.field != "tokenizer") continue;
      if (!is_one(file.path)) continue;
      paths.push_back({DataFieldPath(spec.data, file), file.path, !file.folder, file.folder});
    }
  }
  if (is_one(spec.initialize.from)) {
    paths.push_back({"initialize.from", spec.initialize.from, true, true});
  }
  return paths;
}

}  // namespace

std::vector<ClusterPath> PathsInDataSets(const JobSpec& spec) {
  return PathsOf(spec, &IsDataSetPath);
}

std::vector<ClusterPath> PathsInBuckets(const JobSpec& spec) {
  return PathsOf(spec, &IsBucketPath);
}

absl::Status CheckBucketSpelling(const JobSpec& spec) {
  for (const ClusterPath& path : PathsOf(spec, &IsMisspeltBucketPath)) {
    return FieldError(
        path.field, absl::StrCat("\"", ShownName(path.path.substr(0, 300)), "\""),
        absl::StrCat("a path in a bucket begins with ", kBucketPrefix, ", in small letters"));
  }
  return absl::OkStatus();
}

std::vector<std::string> DataSetsOf(const JobSpec& spec) {
  std::set<std::string> sets;
  for (const ClusterPath& path : PathsInDataSets(spec)) {
    const absl::StatusOr<DataSetPath> parsed = ParseDataSetPath(path.path);
    if (parsed.ok()) sets.insert(parsed->set);
  }
  return {sets.begin(), sets.end()};
}

}  // namespace stagecoach
