// Copies of shards: a checkpoint is written as without them, whatever their disk does.
#include "checkpoint/local/local_shards.h"

#include <chrono>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "base/testing/temporary_folder.h"
#include "checkpoint/local/keeping_files.h"
#include "checkpoint/names.h"
#include "checkpoint/testing/fault_file_system.h"
#include "checkpoint/testing/toy_checkpoint.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace stagecoach {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

constexpr char kJobs[] = "/cache/checkpoints";
constexpr double kDay = 86400;

class LocalShardsTest : public testing::Test {
 protected:
  LocalShardsTest() { CHECK_OK(store_files_.MakeFolders("/root")); }

  static LocalShards::Options OptionsOf(FaultFileSystem& disk) {
    return {.files = &disk,
            .folder = [&disk]() -> absl::StatusOr<std::string> {
              RETURN_IF_ERROR(disk.MakeFolders("/cache"));
              return "/cache";
            },
            .reserve_bytes = 0,
            .idle_seconds = [](const std::string&) { return 0; }};
  }

  // Saves a checkpoint as a stage with copies does. Answers its manifest.
  static Manifest Save(FileSystem& store_files, LocalShards& shards, uint64_t step,
                       const std::string& job = "job") {
    KeepingFiles files(&store_files, &shards);
    CheckpointStore store(&files, "/root");
    const absl::StatusOr<CheckpointRef> ref = SaveToy(files, store, job, 1, step);
    CHECK_OK(ref.status());
    absl::StatusOr<Manifest> manifest = store.ReadManifest(*ref);
    CHECK_OK(manifest.status());
    return *std::move(manifest);
  }
  Manifest Save(uint64_t step, const std::string& job = "job") {
    return Save(store_files_, shards_, step, job);
  }

  std::vector<std::string> Names(const std::string& folder) {
    const absl::StatusOr<std::vector<std::string>> names = disk_.List(folder);
    return names.ok() ? *names : std::vector<std::string>();
  }
  static std::string PathOf(const Manifest& manifest, const ShardInfo& shard) {
    return absl::StrCat(kJobs, "/", manifest.job, "/", FormatStepFolder(manifest.state.step), "/",
                        shard.sha256);
  }

  FaultFileSystem store_files_, disk_;
  LocalShards shards_{OptionsOf(disk_)};
};

TEST_F(LocalShardsTest, ACopyHasTheBytesAndTheDigestOfTheStoresFile) {
  const Manifest manifest = Save(7);
  ASSERT_EQ(manifest.shards.size(), 2u);
  for (const ShardInfo& shard : manifest.shards) {
    EXPECT_EQ(disk_.Contents(PathOf(manifest, shard)),
              store_files_.Contents("/root/job/step-000000000007/" + shard.file));
    absl::StatusOr<SafetensorsReader> reader = shards_.Open("job", 7, shard);
    ASSERT_TRUE(reader.ok()) << reader.status();
    EXPECT_EQ(reader->tensors().size(), shard.tensors.size());
  }
  EXPECT_THAT(Names(std::string(kJobs) + "/job/step-000000000007"),
              UnorderedElementsAre(manifest.shards[0].sha256, manifest.shards[1].sha256));
}

TEST_F(LocalShardsTest, ACopyOfAnotherJobStepOrDigestIsNotFound) {
  const ShardInfo shard = Save(7).shards[0];
  ShardInfo other = shard;
  other.sha256[0] = other.sha256[0] == '0' ? '1' : '0';
  ShardInfo hostile = shard;
  hostile.sha256 = "../step-000000000007/" + shard.sha256;
  EXPECT_TRUE(absl::IsNotFound(shards_.Open("job", 8, shard).status()));
  EXPECT_TRUE(absl::IsNotFound(shards_.Open("other", 7, shard).status()));
  EXPECT_TRUE(absl::IsNotFound(shards_.Open("..", 7, shard).status()));
  EXPECT_TRUE(absl::IsNotFound(shards_.Open("job", 7, other).status()));
  EXPECT_TRUE(absl::IsNotFound(shards_.Open("job", 7, hostile).status()));
}

TEST_F(LocalShardsTest, ACopyOfAnotherSizeIsRefusedAndGoes) {
  const Manifest manifest = Save(7);
  const ShardInfo& shard = manifest.shards[0];
  const std::string intact = disk_.Contents(PathOf(manifest, shard));
  for (const std::string& bytes : {intact.substr(0, intact.size() - 1), std::string()}) {
    disk_.SetContents(PathOf(manifest, shard), bytes);
    EXPECT_TRUE(absl::IsDataLoss(shards_.Open("job", 7, shard).status()));
  }
  shards_.Drop("job", 7, shard, absl::DataLossError("damaged"));
  EXPECT_TRUE(absl::IsNotFound(shards_.Open("job", 7, shard).status()));
  EXPECT_TRUE(shards_.Open("job", 7, manifest.shards[1]).ok());
}

TEST_F(LocalShardsTest, KeepsTheNewestStepsBesideTheOneBeingWritten) {
  for (uint64_t step = 1; step <= 4; ++step) Save(step);
  EXPECT_THAT(Names("/cache/checkpoints/job"),
              ElementsAre("step-000000000003", "step-000000000004"));
  Save(1, "other");
  EXPECT_THAT(Names("/cache/checkpoints/job"),
              ElementsAre("step-000000000003", "step-000000000004"));
}

TEST_F(LocalShardsTest, TrainingThatWentBackDropsTheStepsThatItLeft) {
  LocalShards::Options options = OptionsOf(disk_);
  options.keep = 3;
  LocalShards shards(std::move(options));
  for (uint64_t step : {1, 2, 3, 4}) Save(store_files_, shards, step);
  CHECK_OK(store_files_.RemoveAll("/root/job"));
  Save(store_files_, shards, 2);
  EXPECT_THAT(Names("/cache/checkpoints/job"),
              ElementsAre("step-000000000001", "step-000000000002"));
}

TEST_F(LocalShardsTest, CopiesOfAJobThatWroteNoneForAWeekGo) {
  std::map<std::string, double> idle;  // by path; 0: just now
  LocalShards::Options options = OptionsOf(disk_);
  options.idle_seconds = [&idle](const std::string& folder) { return idle[folder]; };
  LocalShards shards(std::move(options));
  for (const char* job : {"old", "young", "unknown"}) Save(store_files_, shards, 1, job);
  for (const char* job : {"old", "young"}) {
    idle[absl::StrCat(kJobs, "/", job)] = 8 * kDay;
    idle[absl::StrCat(kJobs, "/", job, "/step-000000000001")] = job[0] == 'o' ? 7.1 * kDay : kDay;
  }
  Save(store_files_, shards, 1, "new");
  EXPECT_THAT(Names(kJobs), UnorderedElementsAre("young", "unknown", "new"));
}

TEST_F(LocalShardsTest, OnAShortDiskCopiesOfJobsAtRestGoFirst) {
  LocalShards::Options options = OptionsOf(disk_);
  options.reserve_bytes = 1000;
  options.idle_seconds = [](const std::string& folder) {
    return folder.find("/rests") == std::string::npos ? 0 : 4000;
  };
  LocalShards shards(std::move(options));
  Save(store_files_, shards, 1, "rests");
  const int64_t free_bytes = int64_t{1} << 40;
  disk_.SetCapacity(free_bytes);
  const int64_t used = free_bytes - *disk_.FreeBytes("/cache");
  disk_.SetCapacity(used + 1000);
  const Manifest manifest = Save(store_files_, shards, 1, "runs");
  EXPECT_THAT(Names(kJobs), ElementsAre("runs"));
  EXPECT_TRUE(shards.Open("runs", 1, manifest.shards[0]).ok());
}

TEST_F(LocalShardsTest, OnAFullDiskTheCheckpointIsWrittenAndNothingHalfStays) {
  for (const int64_t capacity : {0, 100, 600}) {
    FaultFileSystem store_files, disk;
    CHECK_OK(store_files.MakeFolders("/root"));
    disk.SetCapacity(capacity);
    LocalShards shards(OptionsOf(disk));
    const Manifest manifest = Save(store_files, shards, 1);
    const auto names = disk.List("/cache/checkpoints/job/step-000000000001");
    if (!names.ok()) continue;
    EXPECT_THAT(*names, Each(testing::Not(StartsWith("."))));
  }
}

TEST_F(LocalShardsTest, AShardThatTheStoreRefusesIsNotKept) {
  CHECK_OK(store_files_.MakeFolders("/root/job/.tmp-1-1-a"));
  KeepingFiles files(&store_files_, &shards_);
  for (int64_t call = 1;; ++call) {
    store_files_.Inject({.call = call});
    const absl::Status written =
        WriteToyShard(files, "/root/job/.tmp-1-1-a", ToyModel(1), 0, 1).status();
    if (written.ok()) break;
    EXPECT_THAT(Names("/cache/checkpoints/job/step-000000000001"), IsEmpty()) << call;
  }
  EXPECT_THAT(Names("/cache/checkpoints/job/step-000000000001"), testing::SizeIs(1));
}

TEST_F(LocalShardsTest, OtherFilesAreNotKept) {
  KeepingFiles files(&store_files_, &shards_);
  for (const char* path : {"/root/a/.tmp-1-1-a/probe", "/root/a/step-000000000001/x.safetensors",
                           "/root/BAD/.tmp-1-1-a/x.safetensors", "/root/x.safetensors"}) {
    CHECK_OK(store_files_.MakeFolders(FolderOf(path)));
    auto file = files.Create(path);
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_TRUE((*file)->Close().ok());
  }
  EXPECT_THAT(Names(kJobs), IsEmpty());
}

// Whatever call of the copies' disk fails, once or from then on, with or without its effect.
TEST_F(LocalShardsTest, AFaultOfTheDiskNeverReachesTheCheckpoint) {
  for (const bool from_then_on : {false, true}) {
    for (const bool after_effect : {false, true}) {
      bool failed = true;
      for (int64_t call = 1; failed; ++call) {
        FaultFileSystem store_files, disk;
        CHECK_OK(store_files.MakeFolders("/root"));
        LocalShards shards(OptionsOf(disk));
        Save(store_files, shards, 1);
        const int64_t before = disk.calls();
        disk.Inject({.call = call, .from_then_on = from_then_on, .after_effect = after_effect});
        const Manifest manifest = Save(store_files, shards, 2);
        failed = disk.calls() - before >= call;
        disk.ClearFault();
        CheckpointStore store(&store_files, "/root");
        EXPECT_TRUE(store.Verify({"job", 2, "/root/job/step-000000000002"}, true).ok());
        for (const ShardInfo& shard : manifest.shards) {
          const auto reader = shards.Open("job", 2, shard);
          if (!reader.ok()) continue;
          EXPECT_EQ(disk.Contents(PathOf(manifest, shard)),
                    store_files.Contents("/root/job/step-000000000002/" + shard.file));
        }
      }
    }
  }
}

TEST(LocalShardsOnDiskTest, FilesAreTheUsersAloneAndOldOnesGo) {
  const TemporaryFolder folder;
  const std::string cache = folder.path() + "/cache", root = folder.path() + "/root";
  CHECK_OK(PosixFileSystem()->MakeFolders(root));
  LocalShards shards({.files = PosixFileSystem(),
                      .folder = [&]() -> absl::StatusOr<std::string> {
                        RETURN_IF_ERROR(PosixFileSystem()->MakeFolders(cache));
                        return cache;
                      },
                      .reserve_bytes = 0});
  KeepingFiles files(PosixFileSystem(), &shards);
  CheckpointStore store(&files, root);
  CHECK_OK(SaveToy(files, store, "old", 1, 1).status());
  namespace fs = std::filesystem;
  const fs::path old = fs::path(cache) / "checkpoints" / "old";
  EXPECT_EQ(fs::status(old).permissions(), fs::perms::owner_all);
  int copies = 0;
  for (const auto& entry : fs::directory_iterator(old / "step-000000000001")) {
    EXPECT_EQ(entry.status().permissions(), fs::perms::owner_read | fs::perms::owner_write);
    ++copies;
  }
  EXPECT_EQ(copies, 2);
  const auto then = fs::file_time_type::clock::now() - std::chrono::hours(8 * 24);
  fs::last_write_time(old / "step-000000000001", then);
  CHECK_OK(SaveToy(files, store, "new", 1, 1).status());
  EXPECT_TRUE(fs::exists(old)) << "its folder changed just now";
  fs::last_write_time(old, then);
  CHECK_OK(SaveToy(files, store, "new", 1, 2).status());
  EXPECT_FALSE(fs::exists(old));
}

}  // namespace
}  // namespace stagecoach
