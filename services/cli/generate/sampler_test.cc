// Sampling: the choice of a token, and that the window and the padding do not change what is seen.
#include "services/cli/generate/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "checkpoint/safetensors.h"
#include "network/network_kinds.h"
#include "network/zoo/gpt.h"
#include "services/cli/commands/commands.h"
#include "stage/cell/initial_value.h"

namespace stagecoach {
namespace {

TEST(ChooseToken, WithoutTemperatureTheLikeliest) {
  EXPECT_EQ(ChooseToken(std::vector<float>{1, 5, 3}, 0, 0.99), 1);
}

TEST(ChooseToken, FallsInProportionToTheSoftmax) {
  const std::vector<float> logits = {0, std::log(2.0f), 0};  // 1/4, 1/2, 1/4
  EXPECT_EQ(ChooseToken(logits, 1, 0.0), 0);
  EXPECT_EQ(ChooseToken(logits, 1, 0.24), 0);
  EXPECT_EQ(ChooseToken(logits, 1, 0.26), 1);
  EXPECT_EQ(ChooseToken(logits, 1, 0.74), 1);
  EXPECT_EQ(ChooseToken(logits, 1, 0.76), 2);
  EXPECT_EQ(ChooseToken(logits, 1e-3, 0.01), 1) << "cold: nearly always the likeliest";
}

class SamplerTest : public testing::Test {
 protected:
  SamplerTest() : folder_(testing::TempDir() + "/sampler_test_" + std::to_string(getpid())) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    GptSpec gpt{.layers = 1, .width = 8, .heads = 2, .context = 4, .vocabulary = 128};
    spec_.model = gpt;
    spec_.seed = 3;
  }
  ~SamplerTest() override { std::filesystem::remove_all(folder_); }

  // Initial weights, written as an export would be.
  std::string WriteWeights(uint64_t seed) {
    const std::string path = folder_ + "/model.safetensors";
    const Network model = ExpandModel(spec_.model).value();
    std::vector<std::vector<float>> values;
    std::vector<TensorSource> sources;
    for (const NetworkLayer& layer : model.layers) {
      for (const ParameterSpec& parameter : layer.parameters) {
        values.push_back(InitialValue(parameter, seed, layer.index));
        for (float& value : values.back()) value *= 20;  // far from uniform: choices differ
        sources.push_back({parameter.name, DType::kF32, parameter.shape, nullptr});
      }
    }
    for (size_t i = 0; i < sources.size(); ++i) {
      sources[i].bytes = [&values, i]() -> absl::StatusOr<std::span<const std::byte>> {
        return std::as_bytes(std::span<const float>(values[i]));
      };
    }
    std::sort(sources.begin(), sources.end(),
              [](const auto& a, const auto& b) { return a.name < b.name; });
    EXPECT_TRUE(WriteSafetensors(*PosixFileSystem(), path, sources, {}).ok());
    return path;
  }

  std::string Text(const std::string& prompt, const SamplingOptions& options) {
    auto sampler = Sampler::Load(path_, spec_, MakeReferenceBackend({}));
    EXPECT_TRUE(sampler.ok()) << sampler.status();
    std::string text;
    const absl::Status status = (*sampler)->Generate(prompt, options, [&text](char byte) {
      text += byte;
      return true;
    });
    EXPECT_TRUE(status.ok()) << status;
    return text;
  }

  const std::string folder_;
  JobSpec spec_;
  std::string path_;
};

TEST_F(SamplerTest, IsAFunctionOfWeightsPromptAndSeed) {
  path_ = WriteWeights(5);
  const SamplingOptions options{.tokens = 12, .temperature = 1, .seed = 9};
  const std::string text = Text("ab", options);
  EXPECT_EQ(text.size(), 12u);
  EXPECT_EQ(Text("ab", options), text);
  EXPECT_NE(Text("ab", {.tokens = 12, .temperature = 1, .seed = 10}), text);
}

TEST_F(SamplerTest, SeesTheLastContextOnly) {
  path_ = WriteWeights(5);
  const SamplingOptions options{.tokens = 8, .temperature = 1, .seed = 9};
  EXPECT_EQ(Text("xxxxwxyz", options), Text("qqwxyz", options)) << "context is 4";
}

TEST_F(SamplerTest, RefusesAPromptBeyondTheVocabulary) {
  path_ = WriteWeights(5);
  auto sampler = Sampler::Load(path_, spec_, MakeReferenceBackend({}));
  ASSERT_TRUE(sampler.ok()) << sampler.status();
  const absl::Status status = (*sampler)->Generate("caf\xc3\xa9", {}, [](char) { return true; });
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(SamplerTest, RefusesWeightsOfAnotherModel) {
  path_ = WriteWeights(5);
  spec_.model.attributes.Set("width", int64_t{16});
  const absl::Status status = Sampler::Load(path_, spec_, MakeReferenceBackend({})).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
}

TEST_F(SamplerTest, AProgramGetsTheTextAsOneObject) {
  WriteWeights(5);
  std::ofstream(folder_ + "/config.json") << R"(
name: tiny
seed: 3
model: {gpt: {layers: 1, width: 8, heads: 2, context: 4, vocabulary: 128}}
data: {text: {path: /data/input.txt}}
training: {steps: 1, batch_size: 1, micro_batches: 1, optimizer: {adamw: {}},
           learning_rate: {cosine: {peak: 0.001, warmup_steps: 0, final: 0.001}}}
pipeline: {stages: 1, schedule: gpipe}
)";
  std::ostringstream out, notes;
  Console console(out, notes, {});
  StopSignal stop;
  CommandContext context;
  context.console = &console;
  context.stop = &stop;
  GenerateOptions options;
  options.source = folder_;
  options.prompt = "a\"b";
  options.tokens = 5;
  options.seed = 9;
  options.threads = 1;
  ASSERT_EQ(RunGenerate(options, context), 0) << notes.str();
  const std::string plain = out.str();
  out.str("");
  context.output = OutputFormat::kJson;
  ASSERT_EQ(RunGenerate(options, context), 0) << notes.str();
  const nlohmann::json told = nlohmann::json::parse(out.str());
  EXPECT_EQ(told["prompt"], "a\"b");
  EXPECT_EQ(plain, absl::StrCat("a\"b", std::string(told["text"]), "\n")) << "ids below 128 only";
  EXPECT_EQ(told["tokens"], 5);
  EXPECT_EQ(told["seed"], 9);
  EXPECT_EQ(told["weights"], folder_ + "/model.safetensors");
}

}  // namespace
}  // namespace stagecoach
