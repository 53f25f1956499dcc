#include "plan/data/data_sets_of.h"

#include <set>

#include "absl/status/statusor.h"
#include "plan/data/data_set_path.h"
#include "plan/job/data_kinds.h"

namespace stagecoach {

std::vector<PathInDataSet> PathsInDataSets(const JobSpec& spec) {
  std::vector<PathInDataSet> paths;
  if (DataKinds().Find(spec.data.kind).ok()) {
    for (const DataFile& file : DataFiles(spec.data)) {
      // A job that writes reads the tokenizer alone. What it was trained with need not be there.
      if (spec.write.has_value() && file.field != "tokenizer") continue;
      if (!IsDataSetPath(file.path)) continue;
      paths.push_back({DataFieldPath(spec.data, file), file.path, !file.folder, file.folder});
    }
  }
  if (IsDataSetPath(spec.initialize.from)) {
    paths.push_back({"initialize.from", spec.initialize.from, true, true});
  }
  return paths;
}

std::vector<std::string> DataSetsOf(const JobSpec& spec) {
  std::set<std::string> sets;
  for (const PathInDataSet& path : PathsInDataSets(spec)) {
    const absl::StatusOr<DataSetPath> parsed = ParseDataSetPath(path.path);
    if (parsed.ok()) sets.insert(parsed->set);
  }
  return {sets.begin(), sets.end()};
}

}  // namespace stagecoach
