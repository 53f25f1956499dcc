// Manifest: the file that makes a folder a checkpoint. Canonical JSON (sorted keys, no spaces)
// whose last member "zz_sha256" is the SHA-256 of everything before it. Numbers that must survive
// exactly (losses) are written as hexadecimal floats in strings.
// Errors: DATA_LOSS for anything that is not byte for byte what FormatManifest writes;
//         FAILED_PRECONDITION for an intact manifest of another format version.
// See: docs/formats.md, "Checkpoints".
#ifndef STAGECOACH_CHECKPOINT_MANIFEST_H_
#define STAGECOACH_CHECKPOINT_MANIFEST_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/files/data_facts.h"
#include "checkpoint/shard.h"

namespace stagecoach {

// All training state that is not a tensor. The resume-equality test covers every field.
struct TrainState {
  uint64_t step = 0;  // optimizer steps applied or skipped
  uint64_t seed = 0;
  int64_t batch_size = 0, micro_batches = 0;
  uint64_t sequences_consumed = 0;  // data cursor
  uint64_t skipped_steps = 0;
  // Applied steps before the optimizer's state began: 0 unless a resume took the weights alone.
  uint64_t optimizer_start = 0;
  int64_t consecutive_nonfinite = 0;
  double last_loss = 0;  // finite or not
  // All losses that are not a number are equal, as their text is.
  friend bool operator==(const TrainState& a, const TrainState& b);
};

// Updates that the optimizer's state has seen: applied steps since it began.
uint64_t OptimizerSteps(const TrainState& state);

struct Manifest {
  int format_version = 1;
  std::string job;
  std::string model_sha256;  // of the canonical text of the expanded network: must match on load
  TrainState state;
  std::string dataset_sha256;
  int64_t dataset_bytes = 0;
  std::string base_sha256;  // content of the weights that adapters belong to; empty: none
  DataFacts facts;          // of the data set, for users of the weights
  uint64_t term = 0;
  int stages = 0;                 // information only
  std::string fingerprint;        // back end and libraries; a difference on resume is a warning
  std::vector<ShardInfo> shards;  // sorted by file name
  friend bool operator==(const Manifest&, const Manifest&) = default;
};

inline constexpr int kManifestFormatVersion = 1;

std::string FormatManifest(const Manifest& manifest);
absl::StatusOr<Manifest> ParseManifest(std::string_view text);

// Parses folder/MANIFEST.json.
absl::StatusOr<Manifest> ReadManifestFile(ReadableFiles& file_system, const std::string& folder);

// SHA-256 over the parameters ("model/...") in the byte order of their names, as "sha256:<hex>".
// Each parameter adds its name, dtype name and shape text, each with a zero byte behind, then its
// bytes. Reads the shards of a committed checkpoint, or of any folder with these files. Compares
// every tensor with the manifest: DATA_LOSS naming file and tensor.
absl::StatusOr<std::string> WeightsDigest(FileSystem& file_system, const std::string& folder,
                                          const Manifest& manifest);

}  // namespace stagecoach

#endif  // STAGECOACH_CHECKPOINT_MANIFEST_H_
