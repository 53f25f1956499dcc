// CheckpointStore: reading. Nothing found in a folder is believed before its digest was compared.
#include <spdlog/spdlog.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "base/files/hash.h"
#include "checkpoint/names.h"
#include "checkpoint/shard_set.h"
#include "checkpoint/store/store.h"

namespace stagecoach {
namespace {

constexpr int64_t kHashedBytes = int64_t{1} << 20;

absl::StatusOr<std::string> HashFile(ReadableFile& file) {
  Sha256 digest;
  std::vector<std::byte> piece(static_cast<size_t>(std::min(file.size(), kHashedBytes)));
  for (int64_t offset = 0; offset < file.size();) {
    const auto part = std::span(piece).first(
        static_cast<size_t>(std::min<int64_t>(file.size() - offset, kHashedBytes)));
    RETURN_IF_ERROR(file.Read(offset, part));
    digest.Update(part);
    offset += static_cast<int64_t>(part.size());
  }
  return digest.Hex();
}

absl::Status VerifyFile(FileSystem& file_system, const std::string& folder,
                        const ShardInfo& shard) {
  const std::string path = JoinPath(folder, shard.file);
  ASSIGN_OR_RETURN(std::unique_ptr<ReadableFile> file, file_system.Open(path));
  if (file->size() != shard.bytes) {
    return absl::DataLossError(
        absl::StrCat(path, ": ", file->size(), " bytes, the manifest says ", shard.bytes));
  }
  ASSIGN_OR_RETURN(const std::string digest, HashFile(*file));
  if (digest != shard.sha256) {
    return absl::DataLossError(
        absl::StrCat(path, ": SHA-256 ", digest, ", the manifest says ", shard.sha256));
  }
  return absl::OkStatus();
}

bool IsBroken(const absl::Status& status) {
  return absl::IsDataLoss(status) || absl::IsNotFound(status);
}

}  // namespace

absl::StatusOr<Manifest> CheckpointStore::ReadManifest(const CheckpointRef& ref) {
  // It could lead to what another user of the machine may write, or out of what a job may read.
  if (file_system_->IsLink(ref.folder)) {
    return absl::DataLossError(
        absl::StrCat(ref.folder,
                     ": is a link; checkpoints are read from folders of their own only: put the "
                     "folder itself here"));
  }
  ASSIGN_OR_RETURN(Manifest manifest, ReadManifestFile(*file_system_, ref.folder));
  if (manifest.job != ref.job) {
    return absl::FailedPreconditionError(absl::StrCat(ref.folder, ": a checkpoint of job ",
                                                      manifest.job, ", not of ", ref.job,
                                                      ": name that job to resume from it"));
  }
  if (manifest.state.step != ref.step) {
    return absl::DataLossError(
        absl::StrCat(ref.folder, ": its manifest is of step ", manifest.state.step));
  }
  return manifest;
}

absl::StatusOr<Manifest> CheckpointStore::Verify(const CheckpointRef& ref, bool tensors) {
  ASSIGN_OR_RETURN(Manifest manifest, ReadManifest(ref));
  for (const ShardInfo& shard : manifest.shards) {
    RETURN_IF_ERROR(VerifyFile(*file_system_, ref.folder, shard));
  }
  ASSIGN_OR_RETURN(ShardSet shards, ShardSet::Open(*file_system_, ref.folder, manifest));
  std::vector<std::byte> bytes;
  for (const TensorEntry& tensor : shards.Tensors("")) {
    if (!tensors) break;  // a load compares each when it reads it
    bytes.resize(static_cast<size_t>(tensor.bytes()));
    RETURN_IF_ERROR(shards.Read(tensor.name, bytes));
  }
  return manifest;
}

absl::Status CheckpointStore::Quarantine(const CheckpointRef& ref) {
  const std::string target =
      JoinPath(JobFolder(ref.job), absl::StrCat(".broken-", NameOf(ref.folder)));
  std::string free_target = target;
  for (int n = 1; file_system_->Exists(free_target); ++n)
    free_target = absl::StrCat(target, ".", n);
  return file_system_->Rename(ref.folder, free_target);
}

absl::StatusOr<CheckpointRef> CheckpointStore::FindLoadable(const std::string& job, int64_t step,
                                                            std::vector<std::string>* quarantined) {
  RETURN_IF_ERROR(CheckJobName(job));
  if (step >= 0) {
    const CheckpointRef ref = RefOf(job, static_cast<uint64_t>(step));
    const absl::Status verified = Verify(ref).status();
    if (verified.ok()) return ref;
    return absl::Status(
        verified.code(),
        absl::StrCat("checkpoint of job ", job, " at step ", step, ": ", verified.message(),
                     "; `stagecoach checkpoints verify ", job,
                     "` shows which steps can be used: name one of them, or none for the "
                     "newest"));
  }
  ASSIGN_OR_RETURN(const std::vector<CheckpointRef> refs, StepFolders(job));
  for (const CheckpointRef& ref : refs) {
    const absl::Status verified = Verify(ref).status();
    if (verified.ok()) return ref;
    if (!IsBroken(verified)) {
      return Annotate(verified, absl::StrCat("checkpoint of job ", job, " at step ", ref.step));
    }
    spdlog::error("checkpoint set aside: {}", verified.ToString());
    // On a disk that cannot be written it stays where it is; it is passed over all the same.
    const absl::Status renamed = Quarantine(ref);
    if (!renamed.ok()) spdlog::warn("set checkpoint aside: {}", renamed.ToString());
    if (quarantined != nullptr) {
      quarantined->push_back(absl::StrCat(NameOf(ref.folder), ": ", verified.message()));
    }
  }
  return absl::NotFoundError(absl::StrCat("job ", job, " has no checkpoint that can be loaded"));
}

}  // namespace stagecoach
