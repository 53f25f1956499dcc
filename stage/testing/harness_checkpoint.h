// For tests: checkpoints of the pipelines of a harness.
#ifndef STAGECOACH_STAGE_TESTING_HARNESS_CHECKPOINT_H_
#define STAGECOACH_STAGE_TESTING_HARNESS_CHECKPOINT_H_

#include <string>
#include <utility>

#include "base/errors/check.h"
#include "stage/testing/manifest_file.h"
#include "stage/testing/pipeline_harness.h"

namespace stagecoach {

// Writes the shards of a pipeline as a committed checkpoint.
inline void WriteCheckpoint(FileSystem& file_system, const std::string& folder, uint64_t step,
                            PipelineHarness& pipeline) {
  CHECK_OK(file_system.MakeFolders(folder));
  Manifest manifest{.job = "a", .state = {.step = step}, .stages = pipeline.stages()};
  for (int k = 0; k < pipeline.stages(); ++k) {
    auto shard = WriteTensors(file_system, folder, pipeline.cells(k), pipeline.optimizer(k),
                              pipeline.backend(k));
    CHECK_OK(shard.status());
    manifest.shards.push_back(*std::move(shard));
  }
  WriteManifestFile(file_system, folder, manifest);
}

// Makes a pipeline go on from a checkpoint.
inline void LoadCheckpoint(FileSystem& file_system, const std::string& folder, uint64_t step,
                           PipelineHarness& pipeline) {
  CheckpointFiles from{.files = &file_system, .folder = folder};
  for (int k = 0; k < pipeline.stages(); ++k) {
    CHECK_OK(LoadTensors(&from, step,
                         TrainingTensors(pipeline.cells(k), pipeline.optimizer(k)),
                         pipeline.backend(k)));
    for (Cell* const cell : pipeline.cells(k)) {
      CHECK_OK(LoadCopies(&from, step, *cell, pipeline.backend(k)));
      cell->RefreshCompute();
    }
  }
  pipeline.set_step(step);
}

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_TESTING_HARNESS_CHECKPOINT_H_
