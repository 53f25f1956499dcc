#include <cmath>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/files/hash.h"
#include "checkpoint/facts_file.h"
#include "checkpoint/testing/fault_file_system.h"
#include "checkpoint/testing/toy_checkpoint.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace stagecoach {
namespace {

using ::testing::ElementsAre;

// Digests as docs/formats.md words them, of the values themselves, or of the values' digests.
std::string Sha256ByHand(uint64_t step, bool of_digests) {
  std::map<std::string, ToyTensor> sorted;
  for (const ToyTensor& tensor : ToyModel(step)) sorted[tensor.expected.name] = tensor;
  std::string text;
  for (const auto& [name, tensor] : sorted) {
    if (!name.starts_with("model/")) continue;
    const std::string bytes(reinterpret_cast<const char*>(tensor.bytes.data()),
                            tensor.bytes.size());
    text += name + '\0' + "F32" + '\0' + tensor.expected.shape.ToString() + '\0' +
            (of_digests ? Sha256Hex(bytes) + '\0' : bytes);
  }
  return Sha256Hex(text);
}
std::string DigestByHand(uint64_t step) { return "sha256:" + Sha256ByHand(step, false); }
std::string ContentByHand(uint64_t step) { return Sha256ByHand(step, true); }

struct Saved {
  FaultFileSystem files;
  CheckpointStore store{&files, "/root"};
  CheckpointRef ref;
  Manifest manifest;

  explicit Saved(bool one_shard) {
    ref = *SaveToy(files, store, "job", 1, 4, one_shard);
    manifest = *store.Verify(ref);
  }
  absl::StatusOr<std::string> Export() {
    return ExportWeights(files, ref, manifest, "/out/model", "{\"width\":3}\n");
  }
};

TEST(WeightsDigest, IsTheSameForEveryLayoutOfShards) {
  Saved one(true), two(false);
  EXPECT_EQ(*WeightsDigest(one.files, one.ref.folder, one.manifest), DigestByHand(4));
  EXPECT_EQ(*WeightsDigest(two.files, two.ref.folder, two.manifest), DigestByHand(4));
}

TEST(ExportWeights, MergesTheParametersOfAllShardsSortedByName) {
  Saved saved(false);
  absl::StatusOr<std::string> digest = saved.Export();
  ASSERT_TRUE(digest.ok()) << digest.status();
  EXPECT_EQ(*digest, DigestByHand(4));
  EXPECT_THAT(*saved.files.List("/out/model"), ElementsAre("model.safetensors", "stagecoach.json"));
  EXPECT_EQ(saved.files.Contents("/out/model/stagecoach.json"), "{\"width\":3}\n");
  absl::StatusOr<SafetensorsReader> reader =
      SafetensorsReader::Open(saved.files, "/out/model/model.safetensors");
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ(reader->metadata().at("content_sha256"), ContentByHand(4));
  std::vector<std::string> names;
  for (const TensorEntry& tensor : reader->tensors()) names.push_back(tensor.name);
  EXPECT_THAT(names, ElementsAre("model/0000/scale", "model/0000/weight", "model/0001/bias"));
  for (const ToyTensor& tensor : ToyModel(4)) {
    const TensorEntry* entry = reader->Find(tensor.expected.name);
    if (entry == nullptr) continue;
    std::vector<std::byte> bytes(tensor.bytes.size());
    ASSERT_TRUE(reader->Read(*entry, bytes).ok());
    EXPECT_EQ(bytes, tensor.bytes);
  }
}

TEST(ExportWeights, WritesTheSameBytesForEveryLayoutOfShards) {
  Saved one(true), two(false);
  ASSERT_TRUE(one.Export().ok());
  ASSERT_TRUE(two.Export().ok());
  EXPECT_EQ(one.files.Contents("/out/model/model.safetensors"),
            two.files.Contents("/out/model/model.safetensors"));
}

// One parameter of three has an average.
TEST(ExportWeights, GivesTheAveragesInThePlaceOfTheirParameters) {
  FaultFileSystem files;
  CheckpointStore store{&files, "/root"};
  std::vector<ToyTensor> model = ToyModel(4);
  ToyTensor average = model[0];
  ASSERT_EQ(average.expected.name, "model/0000/weight");
  average.expected.name = "opt/average/0000/weight";
  average.bytes.assign(average.bytes.size(), std::byte{0x3f});
  model.push_back(average);
  const std::string temporary = *store.Begin("job", 1, 4, 0);
  Manifest manifest = ToyManifest("job", 1, 4);
  std::vector<ExpectedTensor> expected = ToyExpected();
  expected.push_back(average.expected);
  manifest.shards.push_back(*WriteToyShard(files, temporary, model, 0, 2));
  const CheckpointRef ref = *store.Commit(temporary, manifest, expected);
  manifest = *store.Verify(ref);
  const auto values = [&](bool averages, const std::string& name) {
    const auto digest = ExportWeights(files, ref, manifest, "/out/model", "{}\n", averages);
    CHECK_OK(digest.status());
    SafetensorsReader reader = *SafetensorsReader::Open(files, "/out/model/model.safetensors");
    EXPECT_EQ(reader.tensors().size(), 3u);
    std::vector<std::byte> bytes(static_cast<size_t>(reader.Find(name)->bytes()));
    CHECK_OK(reader.Read(*reader.Find(name), bytes));
    return std::pair(*digest, bytes);
  };
  const auto plain = values(false, "model/0000/weight"),
             averaged = values(true, "model/0000/weight");
  EXPECT_EQ(plain.second, model[0].bytes);
  EXPECT_EQ(averaged.second, average.bytes);
  EXPECT_NE(plain.first, averaged.first);
  EXPECT_EQ(values(true, "model/0001/bias").second, values(false, "model/0001/bias").second);
}

// Seen: of a GPT that had diverged 19 of 102 tensors had infinities, and its job had succeeded.
TEST(ExportWeights, RefusesWeightsThatAreNotFiniteOnlyWhereAsked) {
  for (const float value :
       {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN(), 3e38f}) {
    FaultFileSystem files;
    CheckpointStore store(&files, "/root");
    std::vector<ToyTensor> model = ToyModel(4);
    ToyTensor& last = model[0];
    ASSERT_EQ(last.expected.name, "model/0000/weight");
    std::memcpy(&last.bytes[last.bytes.size() - sizeof value], &value, sizeof value);
    const std::string temporary = *store.Begin("job", 1, 4, 0);
    Manifest manifest = ToyManifest("job", 1, 4);
    manifest.shards.push_back(*WriteToyShard(files, temporary, model, 0, 2));
    const CheckpointRef ref = *store.Commit(temporary, manifest, ToyExpected());
    manifest = *store.Verify(ref);
    const auto refused = ExportWeights(files, ref, manifest, "/out/a", "{}\n", false, true);
    EXPECT_EQ(refused.ok(), std::isfinite(value)) << refused.status();
    EXPECT_EQ(files.Exists("/out/a/model.safetensors"), refused.ok());
    if (!refused.ok()) {
      EXPECT_TRUE(absl::IsFailedPrecondition(refused.status()));
      EXPECT_NE(refused.status().message().find("tensor model/0000/weight"), std::string::npos);
    }
    EXPECT_TRUE(ExportWeights(files, ref, manifest, "/out/b", "{}\n").ok()) << "a user asks for it";
  }
}

TEST(ExportWeights, RefusesAveragesThatWereNotKept) {
  Saved saved(false);
  const absl::Status status =
      ExportWeights(saved.files, saved.ref, saved.manifest, "/out/model", "{}\n", true).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_NE(status.message().find("training.average"), absl::string_view::npos) << status;
}

TEST(ExportWeights, PutsWhatTheDataToldBesideTheWeights) {
  Saved saved(false);
  saved.manifest.facts = {.classes = {"ape", "bee"}, .mean = {0.1}, .deviation = {1.0 / 3}};
  ASSERT_TRUE(saved.Export().ok());
  EXPECT_THAT(*saved.files.List("/out/model"),
              ElementsAre("data.json", "model.safetensors", "stagecoach.json"));
  const auto read = ReadFacts(saved.files, "/out/model");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, saved.manifest.facts);
  EXPECT_TRUE(ReadFacts(saved.files, "/out")->empty()) << "there is none";
  for (const char* text : {"", "[]", R"({"classes": "ape"})", R"({"mean": ["0.1"]})",
                           R"({"mean": [0], "deviation": [0]})"}) {
    saved.files.SetContents("/out/model/data.json", text);
    const absl::Status status = ReadFacts(saved.files, "/out/model").status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << text << status;
    EXPECT_NE(status.message().find("/out/model/data.json"), absl::string_view::npos) << status;
  }
}

TEST(ExportWeights, ReplacesAnEarlierExport) {
  Saved saved(false);
  ASSERT_TRUE(saved.Export().ok());
  EXPECT_TRUE(saved.Export().ok());
  EXPECT_THAT(*saved.files.List("/out/model"), ElementsAre("model.safetensors", "stagecoach.json"));
}

// Symptom: a job named as one of another state folder had that one's names of classes beside its
// weights.
TEST(ExportWeights, WhatEarlierDataToldDoesNotStay) {
  Saved saved(false);
  saved.manifest.facts = {.classes = {"ape", "bee"}};
  ASSERT_TRUE(saved.Export().ok());
  saved.manifest.facts = {};
  ASSERT_TRUE(saved.Export().ok());
  EXPECT_TRUE(ReadFacts(saved.files, "/out/model")->empty());
}

TEST(ExportWeights, WritesNothingFromADamagedShard) {
  Saved saved(false);
  const std::string path = saved.ref.folder + "/layer-0001-0002.safetensors";
  std::string bytes = saved.files.Contents(path);
  // The parameter lies before the optimizer's slot of the same size.
  bytes[bytes.size() - 25] = static_cast<char>(bytes[bytes.size() - 25] ^ 1);
  saved.files.SetContents(path, bytes);
  const absl::Status status = saved.Export().status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_NE(status.message().find("model/0001/bias"), absl::string_view::npos) << status;
  EXPECT_THAT(*saved.files.List("/out/model"), ElementsAre("stagecoach.json"));
  EXPECT_TRUE(
      absl::IsDataLoss(WeightsDigest(saved.files, saved.ref.folder, saved.manifest).status()));
}

TEST(ExportWeights, LeavesAWholeExportOrTheOldOneAtAnyFailedCall) {
  int64_t calls = 0;
  {
    Saved saved(false);
    const int64_t before = saved.files.calls();
    ASSERT_TRUE(saved.Export().ok());
    calls = saved.files.calls() - before;
  }
  for (int64_t n = 1; n <= calls; ++n) {
    SCOPED_TRACE(absl::StrCat("call ", n));
    Saved saved(false);
    saved.files.Inject({.call = n, .from_then_on = true});
    EXPECT_FALSE(saved.Export().ok());
    saved.files.ClearFault();
    if (saved.files.Exists("/out/model/model.safetensors")) {
      EXPECT_TRUE(SafetensorsReader::Open(saved.files, "/out/model/model.safetensors").ok());
    }
    EXPECT_TRUE(saved.Export().ok());
  }
}

}  // namespace
}  // namespace stagecoach
