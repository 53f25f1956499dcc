#include "services/coordinator/data/changed_objects.h"

#include <cstddef>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/utf8.h"
#include "plan/data/bucket_path.h"
#include "plan/data/data_set_path.h"
#include "plan/data/data_sets_of.h"

namespace stagecoach {
namespace {

constexpr size_t kMostShownObjects = 3;

struct LinkedSets {
  std::string then, now;  // ids
};

// Of the first path that is in both jobs, in different sets. A job has one linked set at most.
std::optional<LinkedSets> DifferentSets(const DataCatalog& catalog, const JobSpec& then,
                                        const JobSpec& now) {
  std::map<std::pair<std::string, std::string>, std::string> sets;  // by field and path in the set
  for (const ClusterPath& named : PathsInDataSets(then)) {
    const absl::StatusOr<DataSetPath> path = ParseDataSetPath(named.path);
    if (path.ok()) sets[{named.field, path->path}] = path->set;
  }
  for (const ClusterPath& named : PathsInDataSets(now)) {
    const absl::StatusOr<DataSetPath> path = ParseDataSetPath(named.path);
    if (!path.ok() || !catalog.IsLinked(path->set)) continue;
    const auto found = sets.find({named.field, path->path});
    if (found != sets.end() && found->second != path->set) return {{found->second, path->set}};
  }
  return std::nullopt;
}

// "ETag "1" of 5 bytes".
std::string ContentOf(const CheckedManifest& manifest, const v1::DataSetFile& file) {
  if (file.bytes() == 0) return "0 bytes";
  const v1::DataPart& part = manifest.manifest().parts(static_cast<int>(file.part()));
  return absl::StrCat("ETag \"", ShownName(part.etag()), "\" of ", file.bytes(), " bytes");
}

std::string ObjectOf(const std::string& path_in_set) {
  return absl::StrCat(kBucketPrefix, ShownName(path_in_set), ": ");
}

std::vector<std::string> Differences(const CheckedManifest& then, const CheckedManifest& now) {
  std::vector<std::string> found;
  for (const v1::DataSetFile& file : then.manifest().files()) {
    const v1::DataSetFile* const other = now.Find(file.path());
    const std::string content = ContentOf(then, file);
    const std::string content_now = other == nullptr ? "nothing" : ContentOf(now, *other);
    if (content == content_now) continue;
    found.push_back(absl::StrCat(ObjectOf(file.path()), content, " then, ", content_now, " now"));
  }
  for (const v1::DataSetFile& file : now.manifest().files()) {
    if (then.Find(file.path()) != nullptr) continue;
    found.push_back(
        absl::StrCat(ObjectOf(file.path()), "nothing then, ", ContentOf(now, file), " now"));
  }
  return found;
}

}  // namespace

std::string ChangedObjects(DataCatalog* catalog, const JobSpec& then, const JobSpec& now) {
  const std::optional<LinkedSets> sets = DifferentSets(*catalog, then, now);
  if (!sets.has_value()) return "";
  const absl::StatusOr<CheckedManifest> old = catalog->Manifest(sets->then);
  const absl::StatusOr<CheckedManifest> here = catalog->Manifest(sets->now);
  if (!old.ok() || !here.ok()) {
    return absl::StrCat("what the objects were then is not known any more: ",
                        (old.ok() ? here : old).status().message());
  }
  std::vector<std::string> found = Differences(*old, *here);
  if (found.size() > kMostShownObjects) {
    const size_t more = found.size() - kMostShownObjects;
    found.resize(kMostShownObjects);
    found.push_back(absl::StrCat(more, " more"));
  }
  return absl::StrJoin(found, "; ");
}

}  // namespace stagecoach
