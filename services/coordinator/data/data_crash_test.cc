// Whatever call on files fails, wherever the process or the power stops: a data set is there whole,
// with its name or without, or it is not there at all.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <span>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/sanitized.h"
#include "checkpoint/testing/fault_file_system.h"
#include "services/coordinator/data/data_catalog.h"
#include "services/coordinator/data/data_set_testing.h"
#include "services/coordinator/store/object_names.h"

namespace stagecoach {
namespace {

using Survivors = FaultFileSystem::Survivors;

constexpr char kOwner[] = "user/alice";
const JobCaller kOwnerCaller{kOwner, true};

// The old set is there under the name "pets"; the new one is uploaded.
struct DataWorld {
  FaultFileSystem files;
  std::unique_ptr<DataCatalog> catalog;
  const TestSet old_set = SetOf({{"a", "miau"}, {"both", "tabby"}});
  const TestSet new_set = SetOf({{"b", "wuff"}, {"both", "tabby"}});
  std::string old_id, new_id;

  DataWorld() {
    EXPECT_TRUE(files.MakeFolders("/state").ok() && files.SyncFolder("/").ok());
    EXPECT_TRUE(Open().ok());
    for (const TestSet& set : {old_set, new_set}) Upload(set);
    old_id = Put(old_set)->id();
    new_id = Sha256Hex(absl::StrCat(OwnerKey(kOwner), "\n", new_set.manifest_sha256));
  }
  absl::Status Open() {
    catalog.reset();
    DataCatalog::Options options;
    options.folder = "/state/data";
    options.files = &files;
    options.reserve_bytes = 0;
    absl::StatusOr<std::unique_ptr<DataCatalog>> opened = DataCatalog::Open(options);
    if (opened.ok()) catalog = *std::move(opened);
    EXPECT_TRUE(files.SyncFolder("/state").ok() || !opened.ok());
    return opened.status();
  }
  // As ObjectFiles leaves them: durable.
  void Upload(const TestSet& set) {
    EXPECT_TRUE(catalog->Prepare(kOwner, set.Listed()).ok());
    const std::string folder = absl::StrCat("/state/data/", "parts/", OwnerKey(kOwner));
    for (const auto& [digest, bytes] : set.parts) {
      const auto file = files.Create(absl::StrCat(folder, "/", digest));
      if (!file.ok()) continue;  // it is there
      EXPECT_TRUE((*file)->Append(std::as_bytes(std::span(bytes))).ok());
      EXPECT_TRUE((*file)->Sync().ok() && (*file)->Close().ok());
    }
    EXPECT_TRUE(files.SyncFolder(folder).ok());
  }
  absl::StatusOr<v1::DataSet> Put(const TestSet& set) {
    v1::PutDataSetRequest request;
    request.set_manifest_sha256(set.manifest_sha256);
    request.set_name("pets");
    request.set_replace(true);
    return catalog->Put(kOwner, request);
  }
  absl::Status Remove() {
    const auto out = catalog->TakeOut(kOwnerCaller, "pets");
    return out.ok() ? catalog->Delete(out->id()) : out.status();
  }

  // A set that is listed has all that its manifest says.
  void CheckWhole(const v1::DataSet& set) {
    const auto manifest = catalog->Manifest(set.id());
    ASSERT_TRUE(manifest.ok()) << manifest.status();
    for (const v1::DataPart& part : manifest->manifest().parts()) {
      EXPECT_EQ(Sha256Hex(files.Contents(
                    absl::StrCat("/state/data/sets/", set.id(), "/", part.sha256()))),
                part.sha256());
    }
  }
  // A new coordinator starts; nothing but whole sets is there. Then the last call is made again.
  void Restart() {
    files.ClearFault();
    ASSERT_TRUE(Open().ok());
    for (const v1::DataSet& set : catalog->List(kOwnerCaller)) CheckWhole(set);
    const auto left = files.List("/state/data/sets");
    ASSERT_TRUE(left.ok());
    EXPECT_EQ(left->size(), catalog->List(kOwnerCaller).size()) << "what is left over is swept";
  }
};

constexpr int kCallStride = kSanitized ? 3 : 1;

template <typename Act>
int64_t CallsOf(Act act) {
  DataWorld world;
  const int64_t before = world.files.calls();
  EXPECT_TRUE(act(world).ok());
  return world.files.calls() - before;
}

TEST(DataCrash, APutThatFailsAnywhereIsDoneByRepeatingIt) {
  const auto put = [](DataWorld& world) { return world.Put(world.new_set).status(); };
  const int64_t calls = CallsOf(put);
  ASSERT_GT(calls, 15);
  int failed = 0;
  for (int64_t n = 1; n <= calls; n += kCallStride) {
    SCOPED_TRACE(absl::StrCat("call ", n));
    DataWorld world;
    world.files.Inject({.call = n, .code = absl::StatusCode::kDataLoss});
    const absl::Status status = put(world);
    failed += status.ok() ? 0 : 1;
    // In the same process, and in the next one.
    world.files.ClearFault();
    for (const v1::DataSet& set : world.catalog->List(kOwnerCaller)) world.CheckWhole(set);
    EXPECT_TRUE(world.catalog->Find(kOwnerCaller, "pets").ok()) << "the name is never free";
    EXPECT_TRUE(world.Put(world.new_set).ok());
    EXPECT_EQ(world.catalog->Find(kOwnerCaller, "pets")->id(), world.new_id);
    world.Restart();
    EXPECT_EQ(world.catalog->Find(kOwnerCaller, "pets")->id(), world.new_id);
    EXPECT_TRUE(world.catalog->Find(kOwnerCaller, world.old_id).ok());
  }
  EXPECT_GT(failed, 10 / kCallStride);
}

TEST(DataCrash, AProcessThatDiesInAPutLeavesTheOldNameOrTheNewOne) {
  const auto put = [](DataWorld& world) { return world.Put(world.new_set).status(); };
  const int64_t calls = CallsOf(put);
  int lost = 0, kept = 0;
  for (int64_t n = 1; n <= calls; n += kCallStride) {
    for (const bool after_effect : {false, true}) {
      SCOPED_TRACE(absl::StrCat("call ", n, after_effect ? ", done" : ", not done"));
      DataWorld world;
      world.files.Inject({.call = n, .from_then_on = true, .after_effect = after_effect});
      const bool done = put(world).ok();
      world.Restart();
      const auto pets = world.catalog->Find(kOwnerCaller, "pets");
      ASSERT_TRUE(pets.ok()) << pets.status();
      EXPECT_TRUE(pets->id() == world.new_id || (!done && pets->id() == world.old_id));
      ++(pets->id() == world.new_id ? kept : lost);
      EXPECT_TRUE(world.Put(world.new_set).ok());
    }
  }
  EXPECT_GT(lost, 0);
  EXPECT_GT(kept, 0);
}

TEST(DataCrash, APowerCutLosesNoSetThatWasAnswered) {
  const auto put = [](DataWorld& world) { return world.Put(world.new_set).status(); };
  const int64_t calls = CallsOf(put);
  for (const Survivors survivors :
       {Survivors::kSynced, Survivors::kEntries, Survivors::kContents, Survivors::kLeaves}) {
    for (int64_t n = 1; n <= calls + 1; n += kCallStride) {
      SCOPED_TRACE(absl::StrCat("before call ", n, ", survivors ", static_cast<int>(survivors)));
      DataWorld world;
      world.files.Inject({.call = n, .from_then_on = true});
      const bool done = put(world).ok();
      world.files.CutPower(survivors);
      world.Restart();
      const auto pets = world.catalog->Find(kOwnerCaller, "pets");
      ASSERT_TRUE(pets.ok()) << pets.status();
      EXPECT_TRUE(pets->id() == world.new_id || (!done && pets->id() == world.old_id));
    }
  }
}

TEST(DataCrash, ARemovalThatStopsAnywhereLeavesAWholeSetOrNone) {
  const auto remove = [](DataWorld& world) { return world.Remove(); };
  const int64_t calls = CallsOf(remove);
  ASSERT_GT(calls, 4);
  int there = 0, gone = 0;
  for (const bool power : {false, true}) {
    for (int64_t n = 1; n <= calls; n += kCallStride) {
      SCOPED_TRACE(absl::StrCat("call ", n, power ? ", power" : ""));
      DataWorld world;
      world.files.Inject({.call = n, .from_then_on = true});
      const bool done = remove(world).ok();
      if (power) world.files.CutPower(Survivors::kSynced);
      world.Restart();
      const bool found = world.catalog->Find(kOwnerCaller, "pets").ok();
      EXPECT_EQ(found, world.catalog->Find(kOwnerCaller, world.old_id).ok());
      EXPECT_FALSE(done && found) << "what was removed does not come back";
      ++(found ? there : gone);
    }
  }
  EXPECT_GT(there, 0);
  EXPECT_GT(gone, 0);
}

TEST(DataCrash, ADiskThatFillsUpIsSaidAndTheNextPutDoesIt) {
  int64_t used = 0;
  {
    DataWorld world;
    world.files.SetCapacity(1 << 20);
    used = (1 << 20) - *world.files.FreeBytes("/");
  }
  int full = 0;
  for (int64_t room = 0; room < 800; room += kSanitized ? 97 : 13) {
    SCOPED_TRACE(absl::StrCat("room ", room));
    DataWorld world;
    world.files.SetCapacity(used + room);
    const absl::Status status = world.Put(world.new_set).status();
    EXPECT_TRUE(status.ok() || absl::IsResourceExhausted(status)) << status;
    full += status.ok() ? 0 : 1;
    world.files.SetCapacity(1 << 20);
    EXPECT_TRUE(world.Put(world.new_set).ok());
    world.Restart();
    EXPECT_EQ(world.catalog->Find(kOwnerCaller, "pets")->id(), world.new_id);
  }
  EXPECT_GT(full, 0);
}

}  // namespace
}  // namespace stagecoach
