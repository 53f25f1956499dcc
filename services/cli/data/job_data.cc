#include "services/cli/data/job_data.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "base/utf8.h"
#include "checkpoint/files/file_system.h"
#include "checkpoint/names.h"
#include "plan/data/data_set_path.h"
#include "plan/job/data_kinds.h"
#include "services/cli/spec/client_files.h"
#include "services/common/convert/spec/convert_kind.h"
#include "services/common/convert/spec/convert_spec.h"

namespace stagecoach {
namespace {

// What the stages read of a folder with weights.
bool IsOfWeights(const std::string& name) {
  return name.ends_with(".safetensors") || name.ends_with(".json");
}

// A path of the job, or one beside such a path.
struct Named {
  std::string field, path;
  FileSet::Takes takes;
};

std::vector<Named> NamedPaths(const v1::JobSpec& spec, const DataSpec& data) {
  std::vector<Named> named;
  for (const DataFile& file : ClientFiles(spec, data)) {
    named.push_back({DataFieldPath(data, file), file.path, {}});
  }
  if (!WeightsAreClients(spec)) return named;
  const std::string& from = spec.initialize().from();
  constexpr char kField[] = "initialize.from";
  named.push_back({kField, from, IsOfWeights});
  if (!from.ends_with(".json")) return named;
  // An index: its shards lie beside it.
  const absl::StatusOr<std::vector<std::string>> beside = PosixFileSystem()->List(FolderOf(from));
  for (const std::string& name : beside.ok() ? *beside : std::vector<std::string>()) {
    if (!name.ends_with(".safetensors") || name.starts_with('.')) continue;
    named.push_back({kField, JoinPath(FolderOf(from), name), {}});
  }
  return named;
}

// Where the job's paths are in the set.
class PathsInSet {
 public:
  explicit PathsInSet(const std::vector<Named>& named) {
    for (const Named& one : named) named_.insert(one.path);
    for (const Named& one : named) {
      const std::string folder = FolderOf(Topmost(one.path));
      if (std::find(folders_.begin(), folders_.end(), folder) != folders_.end()) continue;
      folders_.push_back(folder);
    }
  }

  std::string Of(const std::string& path) const {
    const std::string top = Topmost(path);
    const auto folder = std::find(folders_.begin(), folders_.end(), FolderOf(top));
    const std::string name = path.substr(top.size() - NameOf(top).size());
    if (folders_.size() == 1) return name;
    return absl::StrCat(folder - folders_.begin(), "/", name);
  }

 private:
  // A folder of the job that the path lies in, or the path itself.
  std::string Topmost(const std::string& path) const {
    for (size_t slash = path.find('/', 1); slash != std::string::npos;
         slash = path.find('/', slash + 1)) {
      if (named_.contains(path.substr(0, slash))) return path.substr(0, slash);
    }
    return path;
  }

  std::set<std::string> named_;
  std::vector<std::string> folders_;  // that these lie in, in the order of their appearance
};

}  // namespace

absl::StatusOr<JobData> FilesOfJob(const v1::JobSpec& spec, const std::set<std::string>& not_here) {
  ASSIGN_OR_RETURN(const DataSpec data, DataFromProto(spec.data()));
  std::vector<Named> named = NamedPaths(spec, data);
  std::erase_if(named, [&](const Named& one) { return not_here.contains(one.path); });
  const PathsInSet paths(named);
  JobData found;
  for (const Named& one : named) {
    if (NameOf(one.path).empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          one.field, ": ", ShownName(one.path), ": is all of this machine; name a folder in it"));
    }
    const std::string path = paths.Of(one.path);
    if (!found.paths.emplace(one.path, path).second) continue;  // one file for two fields
    RETURN_IF_ERROR(Annotate(found.files.Add(one.path, path, one.takes), one.field));
  }
  RETURN_IF_ERROR(found.files.Sort());
  return found;
}

void ChangeJobPaths(const JobData& data, const std::string& set_id, v1::JobSpec* spec) {
  const auto change = [&](const std::string& path) {
    const auto found = data.paths.find(path);
    return found == data.paths.end() ? path : DataSetPath{set_id, found->second}.Text();
  };
  if (WeightsAreClients(*spec)) {
    spec->mutable_initialize()->set_from(change(spec->initialize().from()));
  }
  if (!DataIsClients(*spec)) return;
  absl::StatusOr<DataSpec> kind = DataFromProto(spec->data());
  if (!kind.ok()) return;  // FilesOfJob said why
  ChangeDataPaths(change, &*kind);
  KindToProto(*kind, spec->mutable_data());
}

}  // namespace stagecoach
