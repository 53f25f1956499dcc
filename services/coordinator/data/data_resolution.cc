#include "services/coordinator/data/data_resolution.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "base/utf8.h"
#include "plan/data/bucket_path.h"
#include "plan/data/data_set_path.h"
#include "plan/data/data_sets_of.h"
#include "plan/job/data_kinds.h"
#include "services/coordinator/data/linked_set.h"

namespace stagecoach {
namespace {

// The sets of one job; each is looked for once.
class Resolution {
 public:
  Resolution(DataCatalog* catalog, const JobCaller& caller) : catalog_(*catalog), caller_(caller) {}

  absl::Status Add(const ClusterPath& named) {
    ASSIGN_OR_RETURN(const DataSetPath path, ParseDataSetPath(named.path));
    ASSIGN_OR_RETURN(const Set* const set, SetOf(path.set));
    const bool folder = path.path.empty() || !set->manifest.List(path.path).empty();
    const bool file = set->manifest.Find(path.path) != nullptr;
    if ((named.file && file) || (named.folder && folder)) {
      placed_[named.path] = DataSetPath{set->held.set.id(), path.path}.Text();
      return absl::OkStatus();
    }
    const std::string where = absl::StrCat("data set ", ShownName(path.set));
    if (folder)
      return absl::InvalidArgumentError(absl::StrCat(where, " has a folder there; name the file"));
    if (file)
      return absl::InvalidArgumentError(absl::StrCat(where, " has a file there; name its folder"));
    return absl::InvalidArgumentError(absl::StrCat(where, " has no such ",
                                                   named.file ? "file" : "folder",
                                                   "; `stagecoach data show` lists its files"));
  }

  absl::Status Link(DataBuckets* buckets, const std::vector<ClusterPath>& paths) {
    if (paths.empty()) return absl::OkStatus();
    ASSIGN_OR_RETURN(const v1::DataManifest manifest, LinkObjects(buckets, paths));
    ASSIGN_OR_RETURN(linked_, catalog_.PutLinked(caller_.name, manifest));
    for (const ClusterPath& path : paths) {
      ASSIGN_OR_RETURN(const BucketPath parsed, ParseBucketPath(path.path));
      placed_[path.path] = DataSetPath{linked_.set.id(), parsed.PathInSet()}.Text();
    }
    return absl::OkStatus();
  }

  std::string Placed(const std::string& path) const {
    const auto found = placed_.find(path);
    return found == placed_.end() ? path : found->second;
  }

  DataHolds TakeHolds() {
    DataHolds holds;
    if (linked_.hold != nullptr) holds.push_back(std::move(linked_.hold));
    for (auto& [name, set] : sets_) holds.push_back(std::move(set.held.hold));
    return holds;
  }

 private:
  struct Set {
    DataCatalog::Held held;
    CheckedManifest manifest;
  };

  absl::StatusOr<const Set*> SetOf(const std::string& name_or_id) {
    const auto found = sets_.find(name_or_id);
    if (found != sets_.end()) return &found->second;
    ASSIGN_OR_RETURN(DataCatalog::Held held, catalog_.Hold(caller_, name_or_id));
    ASSIGN_OR_RETURN(CheckedManifest manifest, catalog_.Manifest(held.set.id()));
    const auto added = sets_.emplace(name_or_id, Set{std::move(held), std::move(manifest)}).first;
    return &added->second;
  }

  DataCatalog& catalog_;
  const JobCaller& caller_;
  std::map<std::string, Set> sets_;
  DataCatalog::Held linked_;  // of the paths in buckets
  std::map<std::string, std::string> placed_;
};

std::string ShownPath(const std::string& path) {
  const absl::StatusOr<DataSetPath> parsed = ParseDataSetPath(path);
  return ShownName(parsed.ok() && !parsed->path.empty() ? parsed->path : path);
}

}  // namespace

absl::StatusOr<ResolvedJob> ResolveDataPaths(DataCatalog* catalog, DataBuckets* buckets,
                                             const JobCaller& caller, JobSpec spec) {
  Resolution resolution(catalog, caller);
  for (const ClusterPath& path : PathsInDataSets(spec)) {
    RETURN_IF_ERROR(Annotate(resolution.Add(path),
                             absl::StrCat(path.field, " = \"", ShownPath(path.path), "\"")));
  }
  RETURN_IF_ERROR(resolution.Link(buckets, PathsInBuckets(spec)));
  if (IsClusterPath(spec.initialize.from)) {
    spec.initialize.from = resolution.Placed(spec.initialize.from);
  }
  if (DataKinds().Find(spec.data.kind).ok()) {
    ChangeDataPaths([&](const std::string& path) { return resolution.Placed(path); }, &spec.data);
  }
  return ResolvedJob{std::move(spec), resolution.TakeHolds()};
}

JobsOfSets JobsReading(const std::vector<JobView>& jobs) {
  JobsOfSets reading;
  for (const JobView& job : jobs) {
    if (IsTerminal(job.phase) || job.spec == nullptr) continue;
    for (const std::string& set : DataSetsOf(*job.spec)) reading[set].push_back(job.id);
  }
  return reading;
}

}  // namespace stagecoach
