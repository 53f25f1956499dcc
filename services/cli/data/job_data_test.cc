// Which files of a job travel, and what becomes of its paths.
#include "services/cli/data/job_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/testing/status_is.h"
#include "base/testing/temporary_folder.h"
#include "services/cli/spec/spec_reader.h"

namespace stagecoach {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string kId(64, 'a');

class JobDataTest : public testing::Test {
 protected:
  // more: data, and other fields of the job, as YAML.
  v1::JobSpec Job(const std::string& more) {
    const auto file = ParseSpec(absl::StrCat("name: x\n", more), folder_.File("job.yaml"));
    EXPECT_TRUE(file.ok()) << file.status();
    return file.ok() ? file->spec : v1::JobSpec();
  }
  std::vector<std::string> Travel(const v1::JobSpec& spec) {
    const auto data = FilesOfJob(spec);
    EXPECT_TRUE(data.ok()) << data.status();
    std::vector<std::string> paths;
    for (const LocalFile& file : data->files.files()) paths.push_back(file.path);
    changed_ = spec;
    ChangeJobPaths(*data, kId, &changed_);
    return paths;
  }
  static std::string In(const std::string& path) { return absl::StrCat("store:/data/", kId, path); }

  const TemporaryFolder folder_;
  v1::JobSpec changed_;
};

TEST_F(JobDataTest, FilesOfOneFolderHaveTheirNames) {
  folder_.Write("input.txt", "1");
  folder_.Write("test.txt", "2");
  EXPECT_THAT(Travel(Job("data: {text: {path: input.txt, test: test.txt}}")),
              ElementsAre("input.txt", "test.txt"));
  EXPECT_EQ(changed_.data().text().path(), In("/input.txt"));
  EXPECT_EQ(changed_.data().text().test(), In("/test.txt"));
}

TEST_F(JobDataTest, OthersHaveTheNumberOfTheirFolder) {
  folder_.Write("texts/input.txt", "1");
  folder_.Write("llama/tokenizer.json", "2");
  folder_.Write("llama/tokenizer_config.json", "3");
  folder_.Write("llama/a.safetensors", "4");
  folder_.Write("llama/pytorch_model.bin", "5");
  EXPECT_THAT(Travel(Job("data: {text: {path: texts/input.txt, tokenizer: llama/tokenizer.json}}\n"
                         "initialize: {from: llama, names: huggingface}")),
              ElementsAre("0/input.txt", "1/llama/a.safetensors", "1/llama/tokenizer.json",
                          "1/llama/tokenizer_config.json"));
  EXPECT_EQ(changed_.data().text().path(), In("/0/input.txt"));
  EXPECT_EQ(changed_.data().text().tokenizer(), In("/1/llama/tokenizer.json"));
  EXPECT_EQ(changed_.initialize().from(), In("/1/llama"));
}

TEST_F(JobDataTest, WhatIsReadBesideAFileTravelsToo) {
  folder_.Write("t.idx", "1");
  folder_.Write("t.bin", "2");
  folder_.Write("w/m.safetensors.index.json", "3");
  folder_.Write("w/m-1.safetensors", "4");
  EXPECT_THAT(Travel(Job("data: {token_file: {files: [t.idx]}}\n"
                         "initialize: {from: w/m.safetensors.index.json}")),
              ElementsAre("0/t.bin", "0/t.idx", "1/m-1.safetensors", "1/m.safetensors.index.json"));
  EXPECT_EQ(changed_.data().token_file().files(0), In("/0/t.idx"));
}

TEST_F(JobDataTest, AJobThatWritesTakesItsTokenizerAlone) {
  folder_.Write("pieces", "1");
  EXPECT_THAT(Travel(Job("data: {parallel_text: {tokenizer: pieces, sources: [a], targets: [b]}}\n"
                         "write: {lines: [x], translate: {}}")),
              ElementsAre("pieces"));
  EXPECT_EQ(changed_.data().parallel_text().tokenizer(), In("/pieces"));
}

TEST_F(JobDataTest, WhatIsElsewhereStaysAsItIs) {
  const v1::JobSpec kept =
      Job("data: {dataset: faces, image_folder: {train: train}}\n"
          "initialize: {on_stages: /models, from: vit}");
  EXPECT_THAT(Travel(kept), IsEmpty());
  EXPECT_EQ(changed_.SerializeAsString(), kept.SerializeAsString());
  EXPECT_EQ(kept.data().image_folder().train(), "train") << "relative to the set";
  EXPECT_EQ(kept.initialize().from(), "vit");
  const std::string stored = In("/a");
  const v1::JobSpec again = Job(absl::StrCat("data: {text: {path: \"", stored, "\"}}"));
  EXPECT_THAT(Travel(again), IsEmpty());
  EXPECT_EQ(changed_.data().text().path(), stored);
  const v1::JobSpec bucket =
      Job("data: {text: {path: \"s3://corpora/a b\", tokenizer: \"s3://corpora/t.json\"}}\n"
          "initialize: {from: \"s3://weights/bert/\"}");
  EXPECT_THAT(Travel(bucket), IsEmpty());
  EXPECT_EQ(changed_.SerializeAsString(), bucket.SerializeAsString());
  EXPECT_EQ(bucket.data().text().path(), "s3://corpora/a b") << "not beside the job file";
  EXPECT_EQ(bucket.initialize().from(), "s3://weights/bert/");
}

TEST_F(JobDataTest, FilesHereTravelBesidePathsInABucket) {
  folder_.Write("pieces", "1");
  EXPECT_THAT(Travel(Job("data: {text: {path: \"s3://corpora/a\", tokenizer: pieces}}")),
              ElementsAre("pieces"));
  EXPECT_EQ(changed_.data().text().path(), "s3://corpora/a");
  EXPECT_EQ(changed_.data().text().tokenizer(), In("/pieces"));
}

TEST_F(JobDataTest, WhatIsMissingNamesTheField) {
  EXPECT_THAT(FilesOfJob(Job("data: {text: {path: none.txt}}")).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("data.text.path: " + folder_.File("none.txt"))));
  EXPECT_THAT(FilesOfJob(Job("data: {cifar: {folder: /}}")).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("all of this machine")));
}

}  // namespace
}  // namespace stagecoach
