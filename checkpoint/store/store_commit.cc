// CheckpointStore::Commit: the order of writes, syncs and renames that makes a checkpoint exist
// whole or not at all (docs/formats.md, "Commit protocol").
#include <spdlog/spdlog.h>

#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "checkpoint/names.h"
#include "checkpoint/shard_set.h"
#include "checkpoint/store/store.h"

namespace stagecoach {
namespace {

std::string Describe(DType dtype, const Shape& shape) {
  return absl::StrCat(DTypeName(dtype), " ", shape.ToString());
}

// The union of the shards is exactly the model: nothing is missing, doubled, unknown or misshapen.
absl::Status CheckUnion(const Manifest& manifest, std::span<const ExpectedTensor> expected) {
  std::map<std::string, const ExpectedTensor*> missing;
  for (const ExpectedTensor& tensor : expected) missing[tensor.name] = &tensor;
  std::set<std::string> seen;
  std::string previous_file;
  for (const ShardInfo& shard : manifest.shards) {
    RETURN_IF_ERROR(CheckShardFile(shard.file));
    if (shard.file <= previous_file) {
      return absl::FailedPreconditionError(
          absl::StrCat("shard ", shard.file, " is given twice or not in the order of file names"));
    }
    previous_file = shard.file;
    for (const ShardTensor& tensor : shard.tensors) {
      const std::string& name = tensor.entry.name;
      if (!seen.insert(name).second) {
        return absl::FailedPreconditionError(
            absl::StrCat("shard ", shard.file, ": tensor ", name, " is in two places"));
      }
      const auto at = missing.find(name);
      if (at == missing.end()) {
        return absl::FailedPreconditionError(
            absl::StrCat("shard ", shard.file, ": tensor ", name, " is not part of the model"));
      }
      if (at->second->dtype != tensor.entry.dtype || !(at->second->shape == tensor.entry.shape)) {
        return absl::FailedPreconditionError(
            absl::StrCat("shard ", shard.file, ": tensor ", name, " is ",
                         Describe(tensor.entry.dtype, tensor.entry.shape), ", the model has ",
                         Describe(at->second->dtype, at->second->shape)));
      }
      missing.erase(at);
    }
  }
  if (missing.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "no shard holds tensor ", missing.begin()->first, " (", missing.size(), " are missing)"));
}

}  // namespace

// A folder that another term began is never committed, and neither is a path made elsewhere.
absl::Status CheckpointStore::CheckTemporary(const std::string& temporary,
                                             const Manifest& manifest) const {
  RETURN_IF_ERROR(CheckJobName(manifest.job));
  const std::optional<TemporaryName> name = ParseTemporaryFolder(NameOf(temporary));
  if (!name || FolderOf(temporary) != JobFolder(manifest.job) || name->term != manifest.term ||
      name->step != manifest.state.step) {
    return absl::FailedPreconditionError(absl::StrCat(temporary, " was not begun for job ",
                                                      manifest.job, ", term ", manifest.term,
                                                      ", step ", manifest.state.step));
  }
  if (file_system_->IsLink(temporary)) {
    return absl::DataLossError(absl::StrCat(temporary, ": is a link, and was begun as a folder"));
  }
  return absl::OkStatus();
}

absl::Status CheckpointStore::CheckShardFiles(const std::string& temporary,
                                              const Manifest& manifest) {
  for (const ShardInfo& shard : manifest.shards) {
    ASSIGN_OR_RETURN(std::unique_ptr<ReadableFile> file,
                     file_system_->Open(JoinPath(temporary, shard.file)));
    if (file->size() != shard.bytes) {
      return absl::DataLossError(absl::StrCat("shard ", shard.file, ": ", file->size(),
                                              " bytes on disk, its stage wrote ", shard.bytes));
    }
  }
  return ShardSet::Open(*file_system_, temporary, manifest).status();
}

absl::Status CheckpointStore::WriteManifest(const std::string& temporary,
                                            const Manifest& manifest) {
  const std::string path = JoinPath(temporary, kManifestFile);
  const std::string text = FormatManifest(manifest);
  RETURN_IF_ERROR(ParseManifest(text).status());   // what cannot be loaded must not be committed
  RETURN_IF_ERROR(file_system_->RemoveAll(path));  // of an earlier attempt
  ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, file_system_->Create(path));
  RETURN_IF_ERROR(file->Append(std::as_bytes(std::span(text))));
  RETURN_IF_ERROR(file->Sync());
  return file->Close();
}

absl::StatusOr<bool> CheckpointStore::AlreadyCommitted(const CheckpointRef& ref,
                                                       const Manifest& manifest) {
  if (!file_system_->Exists(ref.folder)) return false;
  absl::StatusOr<Manifest> found = Verify(ref);
  if (found.ok()) {
    if (found->model_sha256 == manifest.model_sha256) return true;
    return absl::FailedPreconditionError(
        absl::StrCat(ref.folder,
                     " holds a checkpoint of another model: move it away or give the "
                     "job another name"));
  }
  if (!absl::IsDataLoss(found.status()) && !absl::IsNotFound(found.status())) {
    return found.status();
  }
  spdlog::error("checkpoint set aside: {}", found.status().ToString());
  RETURN_IF_ERROR(Quarantine(ref));
  return false;
}

absl::Status CheckpointStore::Publish(const std::string& temporary, const CheckpointRef& ref) {
  const std::string job_folder = JobFolder(ref.job);
  RETURN_IF_ERROR(file_system_->SyncFolder(temporary));  // the entries of shards and manifest
  RETURN_IF_ERROR(file_system_->Rename(temporary, ref.folder));  // the commit
  absl::Status synced = file_system_->SyncFolder(job_folder);
  if (synced.ok()) return synced;
  // Visible, but not known to be durable: take it back, as the caller will be told that it failed.
  // If this fails too, what stays is a whole checkpoint all the same.
  file_system_->Rename(ref.folder, temporary).IgnoreError();
  return synced;
}

void CheckpointStore::WriteLatest(const CheckpointRef& ref) {
  const auto write = [&]() -> absl::Status {
    const std::string text = absl::StrCat(NameOf(ref.folder), "\n");
    const std::string path = JoinPath(JobFolder(ref.job), kLatestFile);
    const std::string temporary = absl::StrCat(path, ".tmp");
    RETURN_IF_ERROR(file_system_->RemoveAll(temporary));
    ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, file_system_->Create(temporary));
    RETURN_IF_ERROR(file->Append(std::as_bytes(std::span(text))));
    RETURN_IF_ERROR(file->Close());
    return file_system_->Rename(temporary, path);
  };
  // A hint for people and scripts; nothing here reads it, so nothing fails with it.
  const absl::Status status = write();
  if (!status.ok()) spdlog::warn("update LATEST: {}", status.ToString());
}

absl::StatusOr<CheckpointRef> CheckpointStore::Commit(const std::string& temporary,
                                                      const Manifest& manifest,
                                                      std::span<const ExpectedTensor> expected) {
  const auto commit = [&]() -> absl::StatusOr<CheckpointRef> {
    RETURN_IF_ERROR(CheckTemporary(temporary, manifest));
    RETURN_IF_ERROR(CheckUnion(manifest, expected));
    RETURN_IF_ERROR(CheckShardFiles(temporary, manifest));
    const CheckpointRef ref = RefOf(manifest.job, manifest.state.step);
    ASSIGN_OR_RETURN(const bool already, AlreadyCommitted(ref, manifest));
    if (already) {
      Abandon(temporary);
    } else {
      RETURN_IF_ERROR(WriteManifest(temporary, manifest));
      RETURN_IF_ERROR(Publish(temporary, ref));
    }
    WriteLatest(ref);
    return ref;
  };
  return Annotate(commit(), absl::StrCat("commit checkpoint of job ", manifest.job, " at step ",
                                         manifest.state.step));
}

}  // namespace stagecoach
