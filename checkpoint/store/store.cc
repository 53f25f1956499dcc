#include "checkpoint/store/store.h"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "checkpoint/names.h"

namespace stagecoach {
namespace {

constexpr char kTrashPrefix[] = ".trash-";

void LogFailure(const absl::Status& status, const char* what) {
  if (!status.ok()) spdlog::warn("{}: {}", what, status.ToString());
}

}  // namespace

CheckpointStore::CheckpointStore(FileSystem* file_system, std::string root)
    : file_system_(file_system), root_(std::move(root)) {}

std::string CheckpointStore::JobFolder(const std::string& job) const {
  return JoinPath(root_, job);
}

CheckpointRef CheckpointStore::RefOf(const std::string& job, uint64_t step) const {
  return {.job = job, .step = step, .folder = JoinPath(JobFolder(job), FormatStepFolder(step))};
}

absl::StatusOr<std::string> CheckpointStore::Begin(const std::string& job, uint64_t term,
                                                   uint64_t step, int64_t needed_bytes) {
  RETURN_IF_ERROR(CheckJobName(job));
  if (step > kMaxCheckpointStep || needed_bytes < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("checkpoint of job ", job, ": step ", step, ", ", needed_bytes,
                     " bytes: want at most 12 digits and bytes >= 0"));
  }
  const std::string job_folder = JobFolder(job);
  RETURN_IF_ERROR(file_system_->MakeFolders(job_folder));
  RETURN_IF_ERROR(file_system_->SyncFolder(root_));  // the job's own entry must outlast a power cut
  ASSIGN_OR_RETURN(const int64_t free_bytes, file_system_->FreeBytes(job_folder));
  const int64_t reserve = needed_bytes / 20;
  if (free_bytes < needed_bytes || free_bytes - needed_bytes < reserve) {
    return absl::ResourceExhaustedError(
        absl::StrCat("checkpoint of job ", job, " at step ", step, ": needs ", needed_bytes,
                     " bytes plus 5 %, ", job_folder, " has ", free_bytes,
                     " free: remove old checkpoints, lower checkpoint.keep or give the coordinator "
                     "a larger disk"));
  }
  const std::string temporary = JoinPath(
      job_folder, FormatTemporaryFolder({.term = term, .step = step}, file_system_->Nonce()));
  RETURN_IF_ERROR(file_system_->MakeFolders(temporary));
  return temporary;
}

void CheckpointStore::Abandon(const std::string& temporary) {
  // Only what Begin made: a mistaken path must not cost a checkpoint.
  if (!ParseTemporaryFolder(NameOf(temporary)) || FolderOf(FolderOf(temporary)) != root_) {
    spdlog::error("abandon checkpoint: {} is no temporary folder of {}", temporary, root_);
    return;
  }
  LogFailure(file_system_->RemoveAll(temporary), "abandon checkpoint");
}

void CheckpointStore::RemoveIfEmpty(const std::string& job) {
  if (!CheckJobName(job).ok()) return;
  const absl::StatusOr<std::vector<std::string>> names = file_system_->List(JobFolder(job));
  if (!names.ok() || !names->empty()) return;
  LogFailure(file_system_->RemoveAll(JobFolder(job)), "remove an empty folder of checkpoints");
}

absl::StatusOr<std::vector<CheckpointRef>> CheckpointStore::StepFolders(const std::string& job) {
  std::vector<CheckpointRef> refs;
  if (!CheckJobName(job).ok()) return refs;
  const absl::StatusOr<std::vector<std::string>> names = file_system_->List(JobFolder(job));
  if (absl::IsNotFound(names.status())) return refs;
  RETURN_IF_ERROR(names.status());
  for (const std::string& name : *names) {
    if (const std::optional<uint64_t> step = ParseStepFolder(name))
      refs.push_back(RefOf(job, *step));
  }
  std::reverse(refs.begin(), refs.end());  // names sort as steps do
  return refs;
}

std::vector<std::string> CheckpointStore::Jobs() {
  absl::StatusOr<std::vector<std::string>> names = file_system_->List(root_);
  if (!names.ok()) return {};
  std::erase_if(*names, [](const std::string& name) { return !CheckJobName(name).ok(); });
  return *std::move(names);
}

std::vector<CheckpointRef> CheckpointStore::ListWithDamaged(const std::string& job) {
  const absl::StatusOr<std::vector<CheckpointRef>> folders = StepFolders(job);
  LogFailure(folders.status(), "list checkpoints");
  return folders.value_or(std::vector<CheckpointRef>());
}

std::vector<CheckpointRef> CheckpointStore::List(const std::string& job) {
  std::vector<CheckpointRef> refs = ListWithDamaged(job);
  std::erase_if(refs, [this](const CheckpointRef& ref) {
    return !file_system_->Exists(JoinPath(ref.folder, kManifestFile));
  });
  return refs;
}

bool CheckpointStore::HasFolder(const CheckpointRef& ref) {
  return file_system_->Exists(ref.folder);
}

bool CheckpointStore::HasFolder(const std::string& job) {
  return CheckJobName(job).ok() && file_system_->Exists(JobFolder(job));
}

absl::Status CheckpointStore::Discard(const CheckpointRef& ref) {
  // Renamed first, and that made durable: half a checkpoint must never carry a committed name.
  const std::string trash =
      JoinPath(JobFolder(ref.job),
               absl::StrCat(kTrashPrefix, NameOf(ref.folder), "-", file_system_->Nonce()));
  RETURN_IF_ERROR(file_system_->Rename(ref.folder, trash));
  RETURN_IF_ERROR(file_system_->SyncFolder(JobFolder(ref.job)));
  return file_system_->RemoveAll(trash);
}

absl::Status CheckpointStore::Retain(const std::string& job, int64_t keep,
                                     std::span<const uint64_t> pinned) {
  RETURN_IF_ERROR(CheckJobName(job));
  const std::vector<CheckpointRef> refs = List(job);
  std::vector<CheckpointRef> surplus;
  bool intact_kept = false;
  int64_t kept = 0;
  for (const CheckpointRef& ref : refs) {
    const bool pin = std::find(pinned.begin(), pinned.end(), ref.step) != pinned.end();
    if (kept < std::max<int64_t>(keep, 1) || pin) {
      ++kept;
    } else {
      surplus.push_back(ref);
    }
  }
  if (surplus.empty()) return absl::OkStatus();
  const auto is_surplus = [&surplus](const CheckpointRef& ref) {
    return std::any_of(surplus.begin(), surplus.end(),
                       [&ref](const CheckpointRef& other) { return other.step == ref.step; });
  };
  for (const CheckpointRef& ref : refs) {
    if (!is_surplus(ref) && Verify(ref).ok()) {
      intact_kept = true;
      break;
    }
  }
  absl::Status first_error;
  for (const CheckpointRef& ref : surplus) {
    // Everything newer is broken: the first intact one stays whatever its age.
    if (!intact_kept) {
      intact_kept = Verify(ref).ok();
      continue;
    }
    absl::Status removed = Discard(ref);
    if (!removed.ok() && first_error.ok()) {
      first_error = Annotate(removed, absl::StrCat("remove old checkpoints of job ", job));
    }
  }
  return first_error;
}

void CheckpointStore::SweepTemporary(const std::string& job, uint64_t current_term) {
  if (!CheckJobName(job).ok()) return;
  absl::StatusOr<std::vector<std::string>> names = file_system_->List(JobFolder(job));
  if (!names.ok()) {
    if (!absl::IsNotFound(names.status())) LogFailure(names.status(), "sweep temporary folders");
    return;
  }
  for (const std::string& name : *names) {
    const std::optional<TemporaryName> temporary = ParseTemporaryFolder(name);
    if (name.starts_with(kTrashPrefix) || (temporary && temporary->term < current_term)) {
      LogFailure(file_system_->RemoveAll(JoinPath(JobFolder(job), name)),
                 "sweep temporary folders");
    }
  }
}

}  // namespace stagecoach
