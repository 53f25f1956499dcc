// Symptom: `generate` took a weights folder only; the folder of a `local` run, a checkpoint and a
// job's id, which are what a user has at hand, were "no file".
#include "services/cli/trained/weight_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "checkpoint/testing/toy_checkpoint.h"
#include "services/cli/testing/fake_job_client.h"

namespace stagecoach {
namespace {

namespace fs = std::filesystem;
using testing::EndsWith;
using testing::HasSubstr;

class WeightSourceTest : public testing::Test {
 protected:
  WeightSourceTest() : folder_(testing::TempDir() + "/weight_source_" + std::to_string(getpid())) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    job_file_ = std::string(STAGECOACH_SOURCE_DIR) + "/examples/gpt-tiny.yaml";
  }
  ~WeightSourceTest() override { fs::remove_all(folder_); }

  std::string Export(const std::string& folder) {
    const std::string path = folder_ + "/" + folder;
    fs::create_directories(path);
    std::ofstream(path + "/model.safetensors", std::ios::binary)
        << std::string("\2\0\0\0\0\0\0\0{}", 10);
    std::ofstream(path + "/stagecoach.json") << "{}";
    return path;
  }
  absl::StatusOr<WeightSource> Find(const std::string& source, const std::string& job_file = "",
                                    int64_t step = -1) {
    return WeightSource::Find(
        {.source = source, .job_file = job_file, .step = step, .connect = [this] {
           return absl::StatusOr<std::unique_ptr<JobClient>>(
               std::make_unique<BorrowedJobClient>(&client_));
         }});
  }
  std::string Found(const std::string& source) {
    const absl::StatusOr<WeightSource> found = Find(source);
    return found.ok() ? found->weights_file() : std::string(found.status().message());
  }

  const std::string folder_;
  std::string job_file_;
  FakeJobClient client_;
};

TEST_F(WeightSourceTest, AnExportIsItsFolderOrItsFile) {
  const std::string path = Export("weights");
  EXPECT_EQ(Found(path), path + "/model.safetensors");
  EXPECT_EQ(Find(path)->name(), path + "/model.safetensors");
  EXPECT_EQ(Found(path + "/model.safetensors"), path + "/model.safetensors");
  EXPECT_EQ(Find(path)->config_file(), path + "/stagecoach.json");
  fs::remove(path + "/stagecoach.json");
  EXPECT_THAT(Found(path), HasSubstr("no stagecoach.json beside the weights"));
}

// "no stagecoach.json beside the weights" was said of whatever file was named.
TEST_F(WeightSourceTest, WeightsOfOtherProgramsAreNamed) {
  std::ofstream(folder_ + "/model.pt", std::ios::binary) << "\x80\x02}q";
  EXPECT_THAT(Found(folder_ + "/model.pt"),
              EndsWith("a pickle of Python's, not a safetensors file"));
  fs::create_directories(folder_ + "/sharded");
  std::ofstream(folder_ + "/sharded/model.safetensors.index.json") << "{}";
  EXPECT_THAT(Found(folder_ + "/sharded"), HasSubstr("holds sharded weights"));
}

TEST_F(WeightSourceTest, TheFolderOfALocalRunIsItsNewestExport) {
  const std::string first = Export("state/exports/a"), second = Export("state/exports/b");
  const auto now = fs::file_time_type::clock::now();
  fs::last_write_time(second + "/model.safetensors", now - std::chrono::hours(1));
  EXPECT_EQ(Found(folder_ + "/state"), first + "/model.safetensors");
  EXPECT_THAT(Find(folder_ + "/state")->passed_over(), testing::ElementsAre(second))
      << "not taken without a word";
  EXPECT_THAT(Find(first)->passed_over(), testing::IsEmpty()) << "this one was named";
  fs::create_directories(folder_ + "/state/exports/being-written");
  EXPECT_EQ(Found(folder_ + "/state"), first + "/model.safetensors");
}

TEST_F(WeightSourceTest, ARunThatDidNotEndIsToldOfItsCheckpoints) {
  EXPECT_THAT(Found(folder_), HasSubstr("holds neither model.safetensors nor"));
  fs::create_directories(folder_ + "/checkpoints/tiny");
  EXPECT_THAT(Found(folder_), EndsWith("name a folder below its checkpoints/, with --job-file"));
}

TEST_F(WeightSourceTest, ACheckpointWantsItsJobAndLeavesNothingBehind) {
  CheckpointStore store(PosixFileSystem(), folder_ + "/checkpoints");
  const CheckpointRef ref = SaveToy(*PosixFileSystem(), store, "toy", 1, 50).value();
  EXPECT_THAT(Found(ref.folder),
              HasSubstr("name the job that they were trained by with --job-file"));
  std::string temporary;
  {
    const absl::StatusOr<WeightSource> found = Find(ref.folder, job_file_);
    ASSERT_TRUE(found.ok()) << found.status();
    temporary = fs::path(found->weights_file()).parent_path();
    EXPECT_TRUE(fs::exists(found->weights_file()));
    EXPECT_TRUE(fs::exists(found->config_file()));
    EXPECT_EQ(found->name(), ref.folder) << "not the temporary folder, which is soon gone";
  }
  EXPECT_FALSE(fs::exists(temporary));
}

TEST_F(WeightSourceTest, AJobsWeightsComeFromTheCoordinator) {
  const std::string path = Export("exports/gpt-1");
  client_.job.set_id("gpt-1");
  client_.job.set_weights_folder(path);
  EXPECT_EQ(Found("gpt-1"), path + "/model.safetensors");
  client_.job.set_weights_folder("/only/there");
  EXPECT_THAT(Found("gpt-1"), HasSubstr("are in /only/there on the coordinator's machine"));
  const absl::Status nobody = Find("nobody").status();
  EXPECT_EQ(nobody.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(nobody.message()),
              HasSubstr("nobody is no file or folder; as a job's id"));
  EXPECT_THAT(Found("/no/such/folder"), HasSubstr("no such file or folder"));
}

TEST_F(WeightSourceTest, AJobAtWorkIsExportedAtTheStepAskedFor) {
  client_.job.set_id("gpt-1");
  client_.exported.set_folder(Export("exports/gpt-1-step-7"));
  EXPECT_THAT(Found("gpt-1"), EndsWith("gpt-1-step-7/model.safetensors"));
  ASSERT_TRUE(Find("gpt-1", "", 7).ok());
  EXPECT_THAT(client_.exported_steps, testing::ElementsAre(-1, 7));
}

}  // namespace
}  // namespace stagecoach
