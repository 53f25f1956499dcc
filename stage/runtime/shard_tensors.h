// Shard tensors: a stage's parameters, states and optimizer slots by their global, K-free names, to
// and from the files of a checkpoint. Any stage may have written a tensor; only its name counts.
// Ownership: borrows everything for the call; tensors are written in place.
// Threads:   executor thread.
// Errors:    DATA_LOSS naming tensor and file: missing, of another type or shape, or not the bytes
//            of the manifest. FAILED_PRECONDITION: a checkpoint of another step. Nothing may be
//            used after an error: some tensors may have been loaded.
#ifndef STAGECOACH_STAGE_RUNTIME_SHARD_TENSORS_H_
#define STAGECOACH_STAGE_RUNTIME_SHARD_TENSORS_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "checkpoint/files/file_system.h"
#include "checkpoint/local/local_shards.h"
#include "checkpoint/shard.h"
#include "stage/cell/cell.h"
#include "stage/cell/optimizer.h"
#include "stage/tensor/named_tensor.h"

namespace stagecoach {

using Cells = std::span<Cell* const>;  // of a stage, ascending

// Sorted by name: parameters and states, or these with the optimizer's slots.
std::vector<NamedTensor> ModelTensors(Cells cells);
std::vector<NamedTensor> TrainingTensors(Cells cells, Optimizer& optimizer, bool averages = true);
// Whether the checkpoint has averages of the weights: its job keeps some.
absl::StatusOr<bool> HoldsAverages(ReadableFiles& file_system, const std::string& folder);

// A checkpoint for loads.
struct CheckpointFiles {
  ReadableFiles* files = nullptr;
  std::string folder;
  LocalShards* local = nullptr;  // read instead of the shards in `folder`; null: none
  // Bytes of tensors that loads have read: from local copies, and of all.
  int64_t local_bytes = 0, bytes = 0;
};

// Fills the tensors from the committed checkpoint, which must be of `step`. A local copy that cannot
// be read or is damaged is dropped, and its tensors come from the folder.
absl::Status LoadTensors(CheckpointFiles* from, uint64_t step,
                         const std::vector<NamedTensor>& tensors, Backend& backend);

// The same for the cell's copies of tied parameters. Other cells, their owners, have written them.
absl::Status LoadCopies(CheckpointFiles* from, uint64_t step, Cell& cell, Backend& backend);

absl::StatusOr<ShardInfo> WriteTensors(FileSystem& file_system, const std::string& folder,
                                       Cells cells, Optimizer& optimizer, Backend& backend);
ShardLayers LayersOf(Cells cells);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_RUNTIME_SHARD_TENSORS_H_
