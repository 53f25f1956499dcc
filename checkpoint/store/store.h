// CheckpointStore: the checkpoints of all jobs under one root. A checkpoint exists if and only if
// its manifest does, in a folder named step-<12 digits>. The rename of the temporary folder commits
// it.
//   <root>/<job>/step-000000000050/{layer-0000-0007.safetensors, MANIFEST.json}
//   <root>/<job>/.tmp-<term>-<step>-<nonce>/     garbage after a restart
//   <root>/<job>/LATEST                          hint only
//   <root>/<job>/.broken-step-000000000050[.n]   set aside by a load; removed with its job only
//   <root>/<job>/.trash-...                      being removed
// Ownership: borrows the file system.
// Threads:   one thread (the coordinator's effects) writes and removes for a job. Other threads may
//            list, read, verify and find what is loadable at the same time.
// Errors:    Commit: FAILED_PRECONDITION if the union of the shards is not the model, otherwise the
//            file system's codes. In both cases nothing is committed. Load never uses a value
//            before every digest was checked.
// See:       docs/formats.md, "Checkpoints".
#ifndef STAGECOACH_CHECKPOINT_STORE_STORE_H_
#define STAGECOACH_CHECKPOINT_STORE_STORE_H_

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "checkpoint/files/file_system.h"
#include "checkpoint/manifest.h"

namespace stagecoach {

struct CheckpointRef {
  std::string job;
  uint64_t step = 0;
  std::string folder;
};

struct ExpectedTensor {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;
};

// What Remove is asked for.
struct CheckpointRemoval {
  std::vector<uint64_t> steps;   // damaged ones too
  bool missing_ok = false;       // a step without a checkpoint is passed over
  bool keep_newest = false;      // somebody goes back to it; of damaged ones, to the one before
  std::vector<uint64_t> pinned;  // in use
};
struct RemovedCheckpoints {
  std::vector<uint64_t> steps;  // ascending
  int64_t bytes = 0;
};

class CheckpointStore {
 public:
  CheckpointStore(FileSystem* file_system, std::string root);

  // Makes an empty temporary folder for the stages to write into. RESOURCE_EXHAUSTED if less than
  // `needed_bytes` plus 5 % is free.
  absl::StatusOr<std::string> Begin(const std::string& job, uint64_t term, uint64_t step,
                                    int64_t needed_bytes);
  // Checks that the shards hold exactly `expected`, writes and syncs the manifest, renames, syncs
  // the parent, updates LATEST. If step-<step> exists and is intact, keeps it and drops the new one
  // (FAILED_PRECONDITION if it is of another model).
  absl::StatusOr<CheckpointRef> Commit(const std::string& temporary, const Manifest& manifest,
                                       std::span<const ExpectedTensor> expected);
  void Abandon(const std::string& temporary);  // removes the folder; errors are logged only
  void RemoveIfEmpty(const std::string& job);  // its folder; likewise

  std::vector<CheckpointRef> List(const std::string& job);  // committed, newest first
  // As List, with step folders that lack a manifest. These are damaged: nothing else leaves such a
  // folder.
  std::vector<CheckpointRef> ListWithDamaged(const std::string& job);
  // The same, or why the storage does not tell; none of a job without a folder.
  absl::StatusOr<std::vector<CheckpointRef>> StepFolders(const std::string& job);
  // whether its folder still exists: others may remove it
  bool HasFolder(const CheckpointRef& ref);
  absl::StatusOr<Manifest> ReadManifest(const CheckpointRef& ref);
  // Checks every size and digest of every file, with `tensors` of every tensor as well. NOT_FOUND.
  // DATA_LOSS: broken, or a link in its place. FAILED_PRECONDITION: intact, but of another format
  // version or job.
  absl::StatusOr<Manifest> Verify(const CheckpointRef& ref, bool tensors = false);
  std::vector<std::string> Jobs();         // that have a folder, sorted
  bool HasFolder(const std::string& job);  // it had a checkpoint, or tried to write one
  // Newest checkpoint that verifies; broken ones are renamed to .broken-<name> and reported in
  // `quarantined` as "<name>: <why>". NOT_FOUND if there is none. Any other error than a broken
  // checkpoint (no permission, a busy disk) is returned: it must not cost progress.
  // With step >= 0: that one or its error, no fallback.
  absl::StatusOr<CheckpointRef> FindLoadable(const std::string& job, int64_t step,
                                             std::vector<std::string>* quarantined);
  // Keeps the newest `keep` (at least 1, and always one that verifies) and `pinned` steps.
  absl::Status Retain(const std::string& job, int64_t keep, std::span<const uint64_t> pinned);
  // Removes the named checkpoints, or none if one of them may not be removed. NOT_FOUND: a step has
  // none; the message has those that there are. FAILED_PRECONDITION: one is in use. An interrupted
  // removal leaves each checkpoint whole or gone.
  absl::StatusOr<RemovedCheckpoints> Remove(const std::string& job,
                                            const CheckpointRemoval& removal);
  // Removes all that the job has, also what was set aside. Repeating it is harmless.
  absl::Status RemoveJob(const std::string& job);
  // Removes temporary folders of earlier terms, at start.
  void SweepTemporary(const std::string& job, uint64_t current_term);

  const std::string& root() const { return root_; }

 private:
  std::string JobFolder(const std::string& job) const;
  CheckpointRef RefOf(const std::string& job, uint64_t step) const;
  absl::Status CheckTemporary(const std::string& temporary, const Manifest& manifest) const;
  absl::Status CheckShardFiles(const std::string& temporary, const Manifest& manifest);
  absl::Status WriteManifest(const std::string& temporary, const Manifest& manifest);
  // True if the step is there, intact and of the same model; a broken one is set aside.
  absl::StatusOr<bool> AlreadyCommitted(const CheckpointRef& ref, const Manifest& manifest);
  absl::Status Publish(const std::string& temporary, const CheckpointRef& ref);
  void WriteLatest(const CheckpointRef& ref);
  absl::Status Quarantine(const CheckpointRef& ref);
  absl::Status Discard(const CheckpointRef& ref);
  std::set<uint64_t> StepsToGoBackTo(const std::vector<CheckpointRef>& refs);
  absl::StatusOr<std::vector<CheckpointRef>> ToRemove(const std::string& job,
                                                      const CheckpointRemoval& removal,
                                                      const std::vector<CheckpointRef>& refs);

  FileSystem* const file_system_;
  const std::string root_;
};

// Writes an export into the folder. model.safetensors has the parameters and states, named as in
// checkpoints. stagecoach.json has the training configuration given. If the manifest has facts of
// the data, data.json has these (checkpoint/facts_file.h). Each file is atomic: temporary name,
// sync, rename. Returns the weights digest, "sha256:<hex>".
// average: averages take the place of the parameters that have one, under their names.
// FAILED_PRECONDITION if the checkpoint has none.
// refuse_not_finite: FAILED_PRECONDITION naming the first tensor with an infinity or a NaN, and no
// weights are written.
absl::StatusOr<std::string> ExportWeights(FileSystem& file_system, const CheckpointRef& ref,
                                          const Manifest& manifest, const std::string& folder,
                                          const std::string& config_json, bool average = false,
                                          bool refuse_not_finite = false);

}  // namespace stagecoach

#endif  // STAGECOACH_CHECKPOINT_STORE_STORE_H_
