#include "services/cli/hugging_face/imported_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "base/golden_testing.h"
#include "base/testing/file_text.h"
#include "base/testing/temporary_folder.h"
#include "network/objectives/cross_entropy.h"
#include "network/zoo/bert.h"
#include "network/zoo/gpt.h"
#include "network/zoo/llama.h"
#include "plan/data/text.h"
#include "services/cli/spec/spec_reader.h"

namespace stagecoach {
namespace {

using testing::HasSubstr;
using testing::Not;

ModelFolder LlamaFolder() {
  return {.path = "/models/Llama-3.2_tiny",
          .tokenizer = "/models/Llama-3.2_tiny/tokenizer.json",
          .config = {.architecture = "LlamaForCausalLM",
                     .network = NetworkSpec(LlamaSpec{.layers = 2,
                                                      .width = 64,
                                                      .heads = 8,
                                                      .key_heads = 2,
                                                      .hidden = 176,
                                                      .context = 4096,
                                                      .vocabulary = 1000,
                                                      .tied_embeddings = true})}};
}

ModelFolder Gpt2Folder() {
  ModelFolder folder = LlamaFolder();
  folder.config = {.architecture = "GPT2LMHeadModel",
                   .network = NetworkSpec(GptSpec{
                       .layers = 2, .width = 64, .heads = 8, .context = 4096, .vocabulary = 1000}),
                   .any_context = false};
  return folder;
}

ModelFolder BertFolder() {
  ModelFolder folder = LlamaFolder();
  NetworkSpec network(BertSpec{
      .layers = 2, .width = 64, .heads = 8, .context = 128, .vocabulary = 1000, .dropout = 0.1});
  network.objective.kind = CrossEntropySpec::kKind;
  network.objective.attributes = ToAttributes(CrossEntropySpec{.ignore_index = 0});
  folder.config = {
      .architecture = "BertForMaskedLM", .network = network, .any_context = false, .masked = true};
  return folder;
}

JobSpec ReadImportedJob(const ModelFolder& folder, const ImportedJobOptions& options) {
  const absl::StatusOr<std::string> text = ImportedJobText(folder, options);
  EXPECT_TRUE(text.ok()) << text.status();
  absl::StatusOr<SpecFile> file = ParseSpec(*text, "/jobs/job.yaml");
  EXPECT_TRUE(file.ok()) << file.status();
  absl::StatusOr<ValidSpecFile> valid = ValidateSpecFile(*std::move(file));
  EXPECT_TRUE(valid.ok()) << valid.status();
  return valid->job;
}

TEST(ImportedJob, IsAJobWithTheModelsNetworkAndWeights) {
  const ModelFolder folder = LlamaFolder();
  ExpectGolden("imported_job.yaml", *ImportedJobText(folder, {.text = "input.txt"}));
  const JobSpec job = ReadImportedJob(folder, {.text = "input.txt"});
  EXPECT_EQ(job.name, "llama-3-2-tiny");
  EXPECT_EQ(job.initialize.from, folder.path);
  NetworkSpec network = folder.config.network;
  network.attributes.Set("context", kUsualContext);
  network.objective = job.network.objective;
  EXPECT_EQ(job.network, network);
}

TEST(ImportedJob, OfBertMasksTokens) {
  const ModelFolder folder = BertFolder();
  ExpectGolden("imported_job_bert.yaml", *ImportedJobText(folder, {.text = "input.txt"}));
  const JobSpec job = ReadImportedJob(folder, {.text = "input.txt"});
  EXPECT_EQ(job.network, folder.config.network);
  EXPECT_EQ(job.data.As<TextData>().masked, 0.15);
}

TEST(ImportedJob, BeginsAHeadThatTheFolderLacks) {
  ModelFolder folder = BertFolder();
  folder.config.except = {"cls.*"};
  EXPECT_THAT(ReadImportedJob(folder, {.text = "a"}).initialize.except,
              testing::ElementsAre("cls.*"));
  EXPECT_THAT(*ImportedJobText(folder, {.text = "a"}), Not(HasSubstr("lora")));
}

TEST(ImportedJob, HasTheContextThatIsAskedFor) {
  EXPECT_THAT(*ImportedJobText(LlamaFolder(), {.text = "a", .context = 2048}),
              HasSubstr("context: 2048,"));
  EXPECT_EQ(ImportedJobText(LlamaFolder(), {.text = "a", .context = 4097}).status().message(),
            "--context: 4097; the model takes 4096 at most");
  EXPECT_THAT(*ImportedJobText(Gpt2Folder(), {.text = "a"}), HasSubstr("context: 4096,"));
  EXPECT_EQ(ImportedJobText(Gpt2Folder(), {.text = "a", .context = 64}).status().message(),
            "--context: 64; must be 4096: the model has weights for each position");
}

// What the comment offers, each kind of network with its own targets.
TEST(ImportedJob, OffersAdaptersThatTheModelTakes) {
  for (const auto& [folder, targets] : {std::pair(LlamaFolder(), std::vector{"query", "value"}),
                                        std::pair(Gpt2Folder(), std::vector{"qkv"}),
                                        std::pair(BertFolder(), std::vector{"query", "value"})}) {
    std::string text = *ImportedJobText(folder, {.text = "a"});
    const size_t comment = text.find("# lora: ");
    ASSERT_NE(comment, text.npos);
    const absl::StatusOr<ValidSpecFile> job =
        CheckImportedJob(folder, text.erase(comment, 2), "/jobs/job.yaml");
    ASSERT_TRUE(job.ok()) << job.status();
    EXPECT_EQ(job->job.training.lora.rank, 8);
    EXPECT_THAT(job->job.training.lora.targets, testing::ElementsAreArray(targets));
  }
}

// A folder's name may be anything.
TEST(ImportedJob, QuotesPathsThatYamlWouldTakeForSomethingElse) {
  ModelFolder folder = LlamaFolder();
  folder.path = "/models/a: #\"b\"\n{c} \U0001f642";
  folder.tokenizer = folder.path + "/tokenizer.json";
  const JobSpec job = ReadImportedJob(folder, {.text = "null"});
  EXPECT_EQ(job.name, "a-b-c");
  EXPECT_EQ(job.initialize.from, folder.path);
  folder.path = "/models/___";
  EXPECT_EQ(ReadImportedJob(folder, {.text = "a"}).name, "imported");
}

}  // namespace
}  // namespace stagecoach
