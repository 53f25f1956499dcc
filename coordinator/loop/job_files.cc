#include "coordinator/loop/job_files.h"

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "checkpoint/files/folder_bytes.h"
#include "checkpoint/names.h"

namespace stagecoach {
namespace {

constexpr char kStepMark[] = ".step-";

// Job names have no dot, so no other job's folder begins so.
absl::StatusOr<std::vector<std::string>> ExportsOf(const JobFiles& files, const std::string& job) {
  std::vector<std::string> folders;
  const absl::StatusOr<std::vector<std::string>> names = files.files->List(files.exports);
  if (absl::IsNotFound(names.status())) return folders;
  RETURN_IF_ERROR(names.status());
  for (const std::string& name : *names) {
    if (name == job || absl::StartsWith(name, absl::StrCat(job, kStepMark))) {
      folders.push_back(JoinPath(files.exports, name));
    }
  }
  return folders;
}

}  // namespace

JobFiles JobFilesIn(const std::string& state_folder, CheckpointStore* store, FileSystem* files) {
  return {store, files, JoinPath(state_folder, "exports"), JoinPath(state_folder, "jobs")};
}

bool IsRequestedExport(const std::string& name) { return absl::StrContains(name, kStepMark); }

JobUsage UsageOf(const JobFiles& files, const std::string& job) {
  JobUsage usage;
  const absl::StatusOr<std::vector<CheckpointRef>> checkpoints = files.store->StepFolders(job);
  usage.listed = checkpoints.status();
  if (checkpoints.ok()) {
    usage.checkpoints = std::ssize(*checkpoints);
    if (!checkpoints->empty()) usage.newest_step = static_cast<int64_t>(checkpoints->front().step);
    usage.checkpoint_bytes = BytesBelow(*files.files, JoinPath(files.store->root(), job));
  }
  const absl::StatusOr<std::vector<std::string>> exports = ExportsOf(files, job);
  if (exports.ok()) {
    for (const std::string& folder : *exports) {
      usage.export_bytes += BytesBelow(*files.files, folder);
    }
  }
  usage.record_bytes = BytesBelow(*files.files, JoinPath(files.records, job));
  return usage;
}

absl::Status RemoveFilesOf(const JobFiles& files, const std::string& job) {
  RETURN_IF_ERROR(files.store->RemoveJob(job));
  ASSIGN_OR_RETURN(const std::vector<std::string> exports, ExportsOf(files, job));
  for (const std::string& folder : exports) {
    RETURN_IF_ERROR(
        Annotate(files.files->RemoveAll(folder), absl::StrCat("remove the exports of job ", job)));
  }
  return Annotate(files.files->RemoveAll(JoinPath(files.records, job)),
                  absl::StrCat("remove the records of job ", job));
}

}  // namespace stagecoach
