// Texts of trained weights: what they are a function of, and what is refused.
#include "services/cli/trained/text_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "base/testing/temporary_folder.h"
#include "checkpoint/safetensors/safetensors.h"
#include "network/layers/attention.h"
#include "network/layers/embedding.h"
#include "network/layers/linear.h"
#include "network/layers/norms.h"
#include "network/network_kinds.h"
#include "network/zoo/gpt.h"
#include "network/zoo/mlp.h"
#include "network/zoo/sequence.h"
#include "network/zoo/transformer.h"
#include "plan/data/parallel_text.h"
#include "services/cli/commands/commands.h"
#include "services/cli/trained/perplexity.h"
#include "stage/cell/initial_value_testing.h"

namespace stagecoach {
namespace {

class TextWriterTest : public testing::Test {
 protected:
  TextWriterTest() {
    GptSpec gpt{.layers = 1, .width = 8, .heads = 2, .context = 4, .vocabulary = 128};
    spec_.network = gpt;
    spec_.seed = 3;
  }

  // Initial weights, written as an export would be.
  std::string WriteWeights(uint64_t seed) {
    const std::string path = folder_.File("model.safetensors");
    const Network network = ExpandNetwork(spec_.network).value();
    std::vector<std::vector<float>> values;
    std::vector<TensorSource> sources;
    for (const NetworkLayer& layer : network.layers) {
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

  absl::StatusOr<DecodingNetwork> Load() {
    ASSIGN_OR_RETURN(Network network, NetworkThatWrites(Writes::kText, spec_));
    return LoadDecodingNetwork(Writes::kText, path_, std::move(network), MakeReferenceBackend({}),
                               nullptr);
  }

  std::vector<WrittenText> Texts(const std::vector<std::string>& prompts,
                                 const WritingOptions& options) {
    const auto network = Load();
    EXPECT_TRUE(network.ok()) << network.status();
    const auto texts =
        WriteTexts(*network, prompts, options, [](int, std::string_view) { return true; });
    EXPECT_TRUE(texts.ok()) << texts.status();
    return *texts;
  }
  std::string Text(const std::string& prompt, const WritingOptions& options) {
    return Texts({prompt}, options).front().text;
  }

  absl::Status Check() const { return NetworkThatWrites(Writes::kText, spec_).status(); }

  const TemporaryFolder folder_;
  JobSpec spec_;
  std::string path_;
};

TEST_F(TextWriterTest, IsAFunctionOfWeightsPromptAndSeed) {
  path_ = WriteWeights(5);
  const WritingOptions options{.tokens = 12, .temperature = 1, .seed = 9};
  const std::string text = Text("ab", options);
  EXPECT_EQ(text.size(), 12u);
  EXPECT_EQ(Text("ab", options), text);
  EXPECT_NE(Text("ab", {.tokens = 12, .temperature = 1, .seed = 10}), text);
}

// Each text is what it would be alone, also where the others' prompts are longer or end before.
TEST_F(TextWriterTest, TextsThatAreWrittenTogetherAreThoseWrittenAlone) {
  path_ = WriteWeights(5);
  const WritingOptions options{.tokens = 12, .temperature = 0, .stops = {"k"}};
  const std::vector<std::string> prompts = {"ab", "stagecoaches", "x", "zz"};
  const std::vector<WrittenText> together = Texts(prompts, options);
  for (size_t i = 0; i < prompts.size(); ++i) {
    const WrittenText alone = Texts({prompts[i]}, options).front();
    EXPECT_EQ(together[i].text, alone.text) << prompts[i];
    EXPECT_EQ(together[i].stopped, alone.stopped) << prompts[i];
    EXPECT_EQ(together[i].tokens, std::ssize(alone.text)) << "a byte each";
  }
  EXPECT_TRUE(std::any_of(together.begin(), together.end(),
                          [](const WrittenText& text) { return text.stopped; }));
}

TEST_F(TextWriterTest, AStopEndsTheTextAndIsNotInIt) {
  path_ = WriteWeights(5);
  const std::string whole = Text("ab", {.tokens = 12, .temperature = 1, .seed = 9});
  const std::string stop = whole.substr(5, 1);
  const WrittenText ended =
      Texts({"ab"}, {.tokens = 12, .temperature = 1, .seed = 9, .stops = {stop}}).front();
  EXPECT_EQ(ended.text, whole.substr(0, whole.find(stop)));
  EXPECT_TRUE(ended.stopped);
  const auto network = Load();
  EXPECT_THAT(std::string(WriteTexts(*network, {"a"}, {.stops = {"ab"}},
                                     [](int, std::string_view) { return true; })
                              .status()
                              .message()),
              testing::HasSubstr("--stop: \"ab\" is not one of the 128 bytes"));
}

TEST_F(TextWriterTest, OneOfTheLikeliestOneIsTheLikeliest) {
  path_ = WriteWeights(5);
  const std::string likeliest = Text("ab", {.tokens = 12, .temperature = 0});
  EXPECT_EQ(Text("ab", {.tokens = 12, .temperature = 5, .top_k = 1}), likeliest);
  EXPECT_EQ(Text("ab", {.tokens = 12, .temperature = 5, .top_p = 1e-6}), likeliest);
}

// Weights of zero foretell nothing: every token is as likely as any other.
TEST_F(TextWriterTest, ThePerplexityOfKnowingNothingIsTheVocabulary) {
  path_ = WriteWeights(5);
  const auto network = Load();
  for (Parameter* parameter : network->trained.cell->parameters()) {
    network->trained.backend->Fill(parameter->value, 0);
  }
  const auto loss = LossOfText(*network, "twelve bytes", [] { return true; });
  ASSERT_TRUE(loss.ok()) << loss.status();
  EXPECT_EQ(loss->tokens, 11);
  EXPECT_EQ(loss->bytes, 12);
  EXPECT_NEAR(loss->perplexity(), 128, 1e-3);
  EXPECT_NEAR(loss->bits_per_byte(), 7 * 11 / 12.0, 1e-6);
}

// Windows of 4 tokens: of 10, the last one is foretold from the one before it alone.
TEST_F(TextWriterTest, PerplexityIsThatOfEachWindow) {
  path_ = WriteWeights(5);
  const auto network = Load();
  const auto of = [&](std::string_view text) {
    return LossOfText(*network, text, [] { return true; }).value();
  };
  const double windows = of("abcde").sum + of("efghi").sum + of("ij").sum;
  EXPECT_NEAR(of("abcdefghij").sum, windows, 1e-4);
  EXPECT_EQ(of("abcdefghij").tokens, 9);
  EXPECT_THAT(std::string(LossOfText(*network, "a", [] { return true; }).status().message()),
              testing::HasSubstr("has 1 tokens; at least 2"));
  EXPECT_THAT(std::string(LossOfText(*network, "caf\xc3", [] { return true; }).status().message()),
              testing::HasSubstr("byte 195 at 3 is not among the 128 tokens"));
}

// The network sees a text's last tokens: when the context is full, its latter half is read again.
TEST_F(TextWriterTest, SeesTheLastContextOnly) {
  path_ = WriteWeights(5);
  const WritingOptions options{.tokens = 8, .temperature = 1, .seed = 9};
  EXPECT_EQ(Text("xxxxwxyz", options), Text("qqwxyz", options)) << "context is 4";
}

TEST_F(TextWriterTest, RefusesAPromptBeyondTheVocabulary) {
  path_ = WriteWeights(5);
  const auto network = Load();
  ASSERT_TRUE(network.ok()) << network.status();
  const auto texts =
      WriteTexts(*network, {"caf\xc3\xa9"}, {}, [](int, std::string_view) { return true; });
  EXPECT_EQ(texts.status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(TextWriterTest, RefusesANetworkOnImages) {
  path_ = WriteWeights(5);
  spec_.network = MlpNetworkSpec{.image = {4, 4, 1}, .hidden = 8, .classes = 3};
  const absl::Status status = Load().status();
  EXPECT_EQ(status.message(), "model: mlp; reads no tokens: text is generated by networks on text");
}

// It read its own padding, and gave other text than the network would.
TEST_F(TextWriterTest, RefusesAJobOnPairs) {
  spec_.data = ParallelTextData{.tokenizer = "pieces.model", .sources = {"a"}, .targets = {"b"}};
  EXPECT_EQ(Check().message(),
            "data: parallel_text; text is generated by networks trained on a text, not on pairs; "
            "`stagecoach translate` uses these");
}

TEST_F(TextWriterTest, RefusesANetworkThatReadsASourceToo) {
  JobSpec spec;
  spec.network = TransformerSpec{.vocabulary = 9,
                                 .source_context = 4,
                                 .target_context = 4,
                                 .width = 8,
                                 .heads = 2,
                                 .encoder_layers = 1,
                                 .decoder_layers = 1};
  EXPECT_EQ(NetworkThatWrites(Writes::kText, spec).status().message(),
            "model: transformer; reads source: text is generated by networks that read tokens "
            "alone");
}

TEST_F(TextWriterTest, RefusesANetworkThatReadsLaterTokens) {
  const auto refusal = [this](const LayerSpec& layer) {
    spec_.network = SequenceSpec{.width = 8,
                                 .context = 4,
                                 .vocabulary = 128,
                                 .layers = {EmbeddingSpec{}, layer, LinearSpec{.out = 128}}};
    return std::string(Check().message());
  };
  EXPECT_THAT(refusal(AttentionSpec{.heads = 2, .causal = false}),
              testing::HasSubstr("reads tokens that are still to be generated (layer 1, attention, "
                                 "by attention without a causal mask)"));
  EXPECT_THAT(refusal(GroupNormSpec{.groups = 2}), testing::HasSubstr("by group_norm)"));
  EXPECT_THAT(refusal(AttentionSpec{.heads = 2}), testing::Not(testing::HasSubstr("generated")));
}

TEST_F(TextWriterTest, RefusesWeightsOfAnotherModel) {
  path_ = WriteWeights(5);
  spec_.network.attributes.Set("width", int64_t{16});
  const absl::Status status = Load().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
}

// A head that nobody reads would be dropped without a word, and the text be another network's.
TEST_F(TextWriterTest, RefusesWeightsThatTheNetworkDoesNotRead) {
  path_ = WriteWeights(5);
  spec_.network.attributes.Set("tied_embeddings", true);
  const absl::Status status = Load().status();
  EXPECT_THAT(
      std::string(status.message()),
      testing::HasSubstr("has no model/0004/weight; give the configuration that these weights "
                         "were trained with"));
}

// The averages of batch norms are weights too: they stayed what happened to be in memory.
TEST_F(TextWriterTest, ReadsTheAveragesOfBatchNorms) {
  spec_.network = SequenceSpec{
      .width = 8,
      .context = 4,
      .vocabulary = 128,
      .layers = {EmbeddingSpec{}, BatchNormSpec{}, LinearSpec{.out = 128, .bias = false}}};
  path_ = WriteWeights(5);
  EXPECT_THAT(std::string(Load().status().message()),
              testing::HasSubstr("no tensor model/0001/running_mean"));
}

TEST_F(TextWriterTest, AProgramGetsTheTextAsOneObject) {
  WriteWeights(5);
  folder_.Write("stagecoach.json", R"(
name: tiny
seed: 3
model: {gpt: {layers: 1, width: 8, heads: 2, context: 4, vocabulary: 128}}
data: {text: {path: /data/input.txt}}
training: {steps: 1, batch_size: 1, micro_batches: 1, optimizer: {adamw: {}},
           learning_rate: {cosine: {peak: 0.001, warmup_steps: 0, final: 0.001}}}
pipeline: {stages: 1, schedule: gpipe}
)");
  std::ostringstream out, notes;
  Console console(out, notes, {});
  StopSignal stop;
  CommandContext context;
  context.console = &console;
  context.stop = &stop;
  GenerateOptions options;
  options.weights.source = folder_.path();
  options.prompt = "a\"b";
  options.tokens = 5;
  options.seed = 9;
  options.weights.threads = 1;
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
  EXPECT_EQ(told["weights"], folder_.File("model.safetensors"));
}

}  // namespace
}  // namespace stagecoach
