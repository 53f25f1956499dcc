// A small model for the tests of this folder. It has two layers whose values depend on the step
// only. It is saved in as many shards as asked for.
#ifndef STAGECOACH_CHECKPOINT_TESTING_TOY_CHECKPOINT_H_
#define STAGECOACH_CHECKPOINT_TESTING_TOY_CHECKPOINT_H_

#include <spdlog/spdlog.h>

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "base/errors/status.h"
#include "checkpoint/shard_set.h"
#include "checkpoint/store/store.h"
#include "gtest/gtest.h"

namespace stagecoach {

// Thousands of failures are injected on purpose: their log lines would hide what a test says.
inline const bool kLogIsQuiet = (spdlog::set_level(spdlog::level::off), true);

struct ToyTensor {
  ExpectedTensor expected;
  int layer = 0;
  std::vector<std::byte> bytes;
};

inline std::vector<ToyTensor> ToyModel(uint64_t step) {
  std::vector<ToyTensor> tensors;
  const auto add = [&](int layer, const std::string& path, const Shape& shape) {
    for (const std::string prefix : {"model/", "opt/m/"}) {
      const std::string name = prefix + "000" + std::to_string(layer) + "/" + path;
      std::vector<float> values(static_cast<size_t>(shape.elements()));
      for (size_t i = 0; i < values.size(); ++i) {
        values[i] = static_cast<float>(step) + 0.125f * static_cast<float>(i + name.size());
      }
      std::vector<std::byte> bytes(values.size() * sizeof(float));
      std::memcpy(bytes.data(), values.data(), bytes.size());
      tensors.push_back({{name, DType::kF32, shape}, layer, std::move(bytes)});
    }
  };
  add(0, "weight", {3, 2});
  add(0, "scale", {});
  add(1, "bias", {5});
  return tensors;
}

inline std::vector<ExpectedTensor> ToyExpected() {
  std::vector<ExpectedTensor> expected;
  for (const ToyTensor& tensor : ToyModel(0)) expected.push_back(tensor.expected);
  return expected;
}

inline Manifest ToyManifest(const std::string& job, uint64_t term, uint64_t step) {
  Manifest manifest;
  manifest.job = job;
  manifest.model_sha256 = Sha256Hex("toy");
  manifest.state = {.step = step,
                    .seed = 0xfedcba9876543210,
                    .batch_size = 8,
                    .micro_batches = 4,
                    .sequences_consumed = 8 * step,
                    .skipped_steps = 1,
                    .consecutive_nonfinite = 2,
                    .last_loss = 0.1 * static_cast<double>(step)};
  manifest.dataset_sha256 = Sha256Hex("text");
  manifest.dataset_bytes = 4;
  manifest.term = term;
  manifest.stages = 2;
  manifest.fingerprint = "reference";
  return manifest;
}

inline absl::StatusOr<ShardInfo> WriteToyShard(FileSystem& files, const std::string& folder,
                                               const std::vector<ToyTensor>& model, int first,
                                               int last) {
  std::vector<TensorSource> sources;
  for (const ToyTensor& tensor : model) {
    if (tensor.layer < first || tensor.layer >= last) continue;
    sources.push_back({tensor.expected.name, tensor.expected.dtype, tensor.expected.shape,
                       [&tensor]() -> absl::StatusOr<std::span<const std::byte>> {
                         return std::span<const std::byte>(tensor.bytes);
                       }});
  }
  return WriteShard(files, folder, {{first, last}}, std::move(sources));
}

// A whole save as the coordinator and two stages (or one) do it.
inline absl::StatusOr<CheckpointRef> SaveToy(FileSystem& files, CheckpointStore& store,
                                             const std::string& job, uint64_t term, uint64_t step,
                                             bool one_shard = false) {
  ASSIGN_OR_RETURN(const std::string temporary, store.Begin(job, term, step, 0));
  const std::vector<ToyTensor> model = ToyModel(step);
  Manifest manifest = ToyManifest(job, term, step);
  const auto save = [&]() -> absl::StatusOr<CheckpointRef> {
    const std::vector<int> cuts = one_shard ? std::vector<int>{0, 2} : std::vector<int>{0, 1, 2};
    for (size_t i = 0; i + 1 < cuts.size(); ++i) {
      ASSIGN_OR_RETURN(ShardInfo shard,
                       WriteToyShard(files, temporary, model, cuts[i], cuts[i + 1]));
      manifest.shards.push_back(std::move(shard));
    }
    return store.Commit(temporary, manifest, ToyExpected());
  };
  absl::StatusOr<CheckpointRef> ref = save();
  if (!ref.ok()) store.Abandon(temporary);
  return ref;
}

// Loads as a restarted cluster does: it must find a checkpoint and exactly the values of its step.
inline uint64_t LoadToy(FileSystem& files, CheckpointStore& store, const std::string& job,
                        std::vector<std::string>* quarantined) {
  absl::StatusOr<CheckpointRef> ref = store.FindLoadable(job, -1, quarantined);
  EXPECT_TRUE(ref.ok()) << ref.status();
  if (!ref.ok()) return 0;
  absl::StatusOr<Manifest> manifest = store.ReadManifest(*ref);
  EXPECT_TRUE(manifest.ok()) << manifest.status();
  EXPECT_EQ(manifest->state, ToyManifest(job, 1, ref->step).state);
  absl::StatusOr<ShardSet> shards = ShardSet::Open(files, ref->folder, *manifest);
  EXPECT_TRUE(shards.ok()) << shards.status();
  for (const ToyTensor& tensor : ToyModel(ref->step)) {
    std::vector<std::byte> bytes(tensor.bytes.size());
    EXPECT_TRUE(shards->Read(tensor.expected.name, bytes).ok());
    EXPECT_EQ(bytes, tensor.bytes) << tensor.expected.name;
  }
  return ref->step;
}

}  // namespace stagecoach

#endif  // STAGECOACH_CHECKPOINT_TESTING_TOY_CHECKPOINT_H_
