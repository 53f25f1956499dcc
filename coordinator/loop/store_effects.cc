#include "coordinator/loop/store_effects.h"

#include <utility>
#include <vector>

namespace stagecoach {
namespace {

// What cannot be removed now is removed after the next checkpoint.
void RemoveOld(CheckpointStore& store, const std::string& job, int64_t keep,
               const CheckpointPins& pins) {
  store.Retain(job, keep, pins.Of(job)).IgnoreError();
}

DataFacts NewestFacts(CheckpointStore& store, const std::string& job) {
  const std::vector<CheckpointRef> refs = store.List(job);
  if (refs.empty()) return {};
  const absl::StatusOr<Manifest> manifest = store.ReadManifest(refs.front());
  return manifest.ok() ? manifest->facts : DataFacts{};
}

}  // namespace

CheckpointSearched RunSearch(CheckpointStore& store, const SearchCheckpoint& action) {
  CheckpointSearched result{action.fence, absl::NotFoundError(""), {}};
  const absl::StatusOr<CheckpointRef> ref =
      store.FindLoadable(action.job, action.step, &result.quarantined);
  if (!ref.ok()) {
    result.found = ref.status();
    result.has_folder = store.HasFolder(action.job);
    return result;
  }
  absl::StatusOr<Manifest> manifest = store.ReadManifest(*ref);
  if (manifest.ok()) {
    result.found = FoundCheckpoint{*ref, *std::move(manifest)};
  } else {
    result.found = manifest.status();
  }
  return result;
}

FolderProbed RunProbe(CheckpointStore& store, FileSystem& file_system, const ProbeFolder& action) {
  const absl::StatusOr<std::string> folder =
      store.Begin(action.fence.job, action.fence.term, action.fence.step, action.bytes);
  if (!folder.ok()) return {action.fence, folder.status()};
  FolderProbed result{action.fence, WriteFolderProbe(file_system, *folder)};
  if (!result.probe.ok()) store.Abandon(*folder);
  return result;
}

FolderChecked RunCheck(CheckpointStore& store, FileSystem& file_system, const CheckFolder& action) {
  FolderChecked result{action.fence, {}};
  for (const int stage : action.stages) {
    absl::Status status = CheckFolderAnswer(file_system, action.probe, stage);
    if (!status.ok()) result.faults[stage] = std::move(status);
  }
  store.Abandon(action.probe.folder);
  if (action.last_use) store.RemoveIfEmpty(action.fence.job);
  return result;
}

CheckpointBegun RunBegin(CheckpointStore& store, const BeginCheckpoint& action) {
  return {action.fence,
          store.Begin(action.fence.job, action.fence.term, action.fence.step, action.bytes)};
}

CheckpointCommitted RunCommit(CheckpointStore& store, const CommitCheckpoint& action,
                              const absl::Status& owner, const CheckpointPins& pins) {
  if (!owner.ok()) return {action.fence, owner};
  Manifest manifest = action.manifest;
  if (manifest.facts.empty()) manifest.facts = NewestFacts(store, action.fence.job);
  CheckpointCommitted result{action.fence, store.Commit(action.folder, manifest, action.expected)};
  if (result.ref.ok()) RemoveOld(store, action.fence.job, action.keep, pins);
  return result;
}

WeightsExported RunExport(CheckpointStore& store, FileSystem& file_system,
                          const ExportCheckpoint& action, const std::string& folder,
                          const std::string& config_json, const absl::Status& owner,
                          const CheckpointPins& pins) {
  const absl::StatusOr<Manifest> manifest = store.ReadManifest(action.ref);
  if (!manifest.ok()) return {action.fence, manifest.status()};
  absl::StatusOr<std::string> digest =
      ExportWeights(file_system, action.ref, *manifest, folder, config_json, false, true);
  if (!digest.ok()) return {action.fence, digest.status()};
  if (owner.ok()) RemoveOld(store, action.fence.job, action.keep, pins);
  return {action.fence, ExportedWeights{*std::move(digest), folder}};
}

absl::StatusOr<RemovedCheckpoints> RunRemoval(CheckpointStore& store, const std::string& job,
                                              const CheckpointRemoval& removal,
                                              const absl::Status& owner) {
  if (!owner.ok()) return owner;
  return store.Remove(job, removal);
}

}  // namespace stagecoach
