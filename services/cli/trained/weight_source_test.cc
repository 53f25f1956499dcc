// Symptom: `generate` took a weights folder only; the folder of a `local` run, a checkpoint and a
// job's id, which are what a user has at hand, were "no file".
#include "services/cli/trained/weight_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>

#include "base/testing/temporary_folder.h"
#include "checkpoint/safetensors/safetensors.h"
#include "checkpoint/testing/toy_checkpoint.h"
#include "services/cli/spec/spec_reader.h"
#include "services/cli/testing/fake_job_client.h"
#include "services/cli/testing/toy_adapters.h"

namespace stagecoach {
namespace {

namespace fs = std::filesystem;
using testing::EndsWith;
using testing::HasSubstr;

class WeightSourceTest : public testing::Test {
 protected:
  std::string Export(const std::string& folder) {
    folder_.Write(folder + "/model.safetensors", std::string("\2\0\0\0\0\0\0\0{}", 10));
    folder_.Write(folder + "/stagecoach.json", "{}");
    return folder_.File(folder);
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

  const TemporaryFolder folder_;
  const std::string job_file_ = STAGECOACH_SOURCE_DIR "/examples/gpt-tiny.yaml";
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

// "stagecoach: : no stagecoach.json beside the weights".
TEST_F(WeightSourceTest, AFileOfAHuggingFaceFolderNamesIt) {
  const std::string path = Export("model");
  fs::remove(path + "/stagecoach.json");
  folder_.Write("model/config.json", "{}");
  EXPECT_THAT(Found(path + "/model.safetensors"),
              EndsWith("a file of a Hugging Face folder; name the folder " + path));
  EXPECT_THAT(Found(path), HasSubstr("config.json: model_type: missing; must name"));
}

// "no stagecoach.json beside the weights" was said of whatever file was named.
TEST_F(WeightSourceTest, WeightsOfOtherProgramsAreNamed) {
  EXPECT_THAT(Found(folder_.Write("model.pt", "\x80\x02}q")),
              EndsWith("a pickle of Python's, not a safetensors file"));
  folder_.Write("sharded/model.safetensors.index.json", "{}");
  EXPECT_THAT(Found(folder_.File("sharded")), HasSubstr("holds sharded weights"));
}

TEST_F(WeightSourceTest, TheFolderOfALocalRunIsItsNewestExport) {
  const std::string first = Export("state/exports/a"), second = Export("state/exports/b");
  const auto now = fs::file_time_type::clock::now();
  fs::last_write_time(second + "/model.safetensors", now - std::chrono::hours(1));
  EXPECT_EQ(Found(folder_.File("state")), first + "/model.safetensors");
  EXPECT_THAT(Find(folder_.File("state"))->passed_over(), testing::ElementsAre(second))
      << "not taken without a word";
  EXPECT_THAT(Find(first)->passed_over(), testing::IsEmpty()) << "this one was named";
  folder_.MakeFolder("state/exports/being-written");
  EXPECT_EQ(Found(folder_.File("state")), first + "/model.safetensors");
}

TEST_F(WeightSourceTest, ARunThatDidNotEndIsToldOfItsCheckpoints) {
  EXPECT_THAT(Found(folder_.path()), HasSubstr("holds neither model.safetensors nor"));
  folder_.MakeFolder("checkpoints/tiny");
  EXPECT_THAT(Found(folder_.path()),
              EndsWith("name a folder below its checkpoints/, with --job-file"));
}

TEST_F(WeightSourceTest, ACheckpointWantsItsJobAndLeavesNothingBehind) {
  CheckpointStore store(PosixFileSystem(), folder_.File("checkpoints"));
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

// Symptoms: the weights of a job that had gone on with another one's adapters were of a job that is
// refused; those of pictures had lost their mean and deviation.
TEST_F(WeightSourceTest, AdaptersAreMergedIntoWeightsOfAJobWithoutThem) {
  const std::string path = WriteToyAdapters(folder_, "adapters");
  folder_.Write("adapters/data.json", "{\"classes\":[\"a\"]}");
  std::string temporary;
  {
    const absl::StatusOr<WeightSource> found = Find(path);
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(found->name(), path + "/model.safetensors");
    EXPECT_EQ(found->base(), folder_.File("base.safetensors"));
    const absl::StatusOr<ValidSpecFile> job =
        ValidateSpecFile(ReadSpecFile(found->config_file()).value());
    ASSERT_TRUE(job.ok()) << job.status();
    EXPECT_FALSE(job->job.training.lora.given());
    EXPECT_EQ(job->job.initialize.from, found->base()) << "where config.json may be";
    temporary = fs::path(found->config_file()).parent_path();
    EXPECT_TRUE(fs::exists(temporary + "/data.json"));
    auto reader = SafetensorsReader::Open(*PosixFileSystem(), found->weights_file());
    ASSERT_TRUE(reader.ok()) << reader.status();
    for (const TensorEntry& entry : reader->tensors()) {
      std::vector<float> values(static_cast<size_t>(entry.shape.elements()));
      ASSERT_TRUE(reader->Read(entry, std::as_writable_bytes(std::span(values))).ok());
      EXPECT_THAT(values, testing::Each(entry.name.ends_with("/attention.qkv.weight") ? 9 : 1))
          << entry.name;
    }
  }
  EXPECT_FALSE(fs::exists(temporary));
  const absl::StatusOr<WeightSource> apart = WeightSource::Find({.source = path, .merged = false});
  ASSERT_TRUE(apart.ok()) << apart.status();
  EXPECT_EQ(apart->weights_file(), path + "/model.safetensors");
  EXPECT_EQ(apart->base(), "");
}

TEST_F(WeightSourceTest, AdaptersWithoutTheirBaseSayWhereToNameIt) {
  const std::string path = WriteToyAdapters(folder_, "adapters");
  fs::remove(folder_.File("base.safetensors"));
  const absl::Status status = Find(path).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()),
              testing::StartsWith(absl::StrCat(
                  path, "/model.safetensors: has adapters alone; copy their base to this machine, ",
                  "and name it in ", path, "/stagecoach.json: initialize.from = \"",
                  folder_.File("base.safetensors"), "\": ")));
}

TEST_F(WeightSourceTest, AJobsWeightsComeFromTheCoordinator) {
  const std::string path = Export("exports/gpt-1");
  client_.job.set_id("gpt-1");
  client_.job.set_weights_folder(path);
  EXPECT_EQ(Found("gpt-1"), path + "/model.safetensors");
  const absl::Status nobody = Find("nobody").status();
  EXPECT_EQ(nobody.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(nobody.message()),
              HasSubstr("nobody is no file or folder; as a job's id"));
  EXPECT_THAT(Found("/no/such/folder"), HasSubstr("no such file or folder"));
}

// Symptom: "its weights are in /only/there on the coordinator's machine".
TEST_F(WeightSourceTest, WeightsOfAnotherMachineAreFetched) {
  const std::string path = Export("exports/gpt-1");
  client_.job.set_id("gpt-1");
  client_.job.set_weights_folder("/only/there");
  client_.exported.set_folder("/only/there.step-7");
  client_.fetch = [&](const v1::ExportWeightsResponse&, const std::string& folder,
                      const OnFetched&) {
    std::filesystem::copy(path, folder);
    return absl::OkStatus();
  };
  std::string fetched;
  {
    const absl::StatusOr<WeightSource> found = Find("gpt-1");
    ASSERT_TRUE(found.ok()) << found.status();
    fetched = found->weights_file();
    EXPECT_TRUE(std::filesystem::exists(fetched));
    EXPECT_TRUE(std::filesystem::exists(found->config_file()));
  }
  EXPECT_FALSE(std::filesystem::exists(fetched)) << "a copy that nobody needs";
  client_.fetch = nullptr;
  EXPECT_THAT(Found("gpt-1"), HasSubstr("weights of job gpt-1"));
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
