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
#include "services/cli/testing/fake_job_client.h"
#include "services/cli/trained/perplexity.h"
#include "services/common/convert/convert_control.h"
#include "stage/cell/initial_value_testing.h"
#include "stage/tokens/byte_level/byte_characters.h"
#include "stage/tokens/model_file_testing.h"
#include "stage/tokens/tokenizer_json_testing.h"

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

  absl::StatusOr<DecodingNetwork> Load(Precision precision = Precision::kFloat32) {
    ASSIGN_OR_RETURN(Network network, NetworkThatWrites(Writes::kText, spec_, precision));
    return LoadDecodingNetwork(Writes::kText, {.from = path_}, std::move(network),
                               MakeReferenceBackend({}), nullptr);
  }

  std::vector<WrittenText> Texts(const std::vector<std::string>& prompts,
                                 const WritingOptions& options) {
    const auto network = Load();
    EXPECT_TRUE(network.ok()) << network.status();
    const auto texts = WriteTexts(*network, prompts, options, {.on_text = GoOn});
    EXPECT_TRUE(texts.ok()) << texts.status();
    return *texts;
  }
  static bool GoOn(int, std::string_view) { return true; }
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

// Beside gradients that nobody wants, a master in float32 was kept for each weight in 16 bits.
TEST_F(TextWriterTest, WeightsAreInMemoryOnceInTheTypeThatIsRead) {
  path_ = WriteWeights(5);
  for (const Precision precision : {Precision::kFloat32, Precision::kBfloat16}) {
    const auto network = Load(precision);
    ASSERT_TRUE(network.ok()) << network.status();
    int64_t bytes = 0;
    for (const Parameter* parameter : network->trained.cell->parameters()) {
      EXPECT_EQ(parameter->value.bytes(), parameter->compute.bytes()) << parameter->spec.name;
      bytes += (parameter->compute.bytes() + 63) / 64 * 64;  // as the allocator counts
    }
    const MemoryUse use = network->trained.backend->allocator().Use();
    EXPECT_EQ(use.current[static_cast<size_t>(MemoryKind::kParameters)], bytes);
    EXPECT_EQ(use.current[static_cast<size_t>(MemoryKind::kGradients)], 0);
    EXPECT_EQ(use.current[static_cast<size_t>(MemoryKind::kOptimizer)], 0);
    const auto texts =
        WriteTexts(*network, {"ab"}, {.tokens = 12, .temperature = 0}, {.on_text = GoOn});
    ASSERT_TRUE(texts.ok()) << texts.status();
    EXPECT_EQ(texts->front().text.size(), 12u);
    const auto loss = LossOfText(*network, "abcdefghabcdefgh", [] { return true; });
    ASSERT_TRUE(loss.ok()) << loss.status();
    EXPECT_EQ(loss->tokens, 15);
  }
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

TEST_F(TextWriterTest, AMiniBatchIsContinuedBeforeTheNextAndChangesNoText) {
  path_ = WriteWeights(5);
  const auto network = Load();
  ASSERT_TRUE(network.ok()) << network.status();
  const std::vector<std::string> prompts = {"ab", "cd", "ef"};
  std::vector<std::string> expected;
  for (const int64_t batch : {kPromptGroups.most, int64_t{2}, int64_t{1}}) {
    std::string order;
    const auto written = WriteTexts(*network, prompts, {.tokens = 2, .batch = batch},
                                    {.on_text = [&](int prompt, std::string_view) {
                                      absl::StrAppend(&order, prompt);
                                      return true;
                                    }});
    ASSERT_TRUE(written.ok()) << written.status();
    EXPECT_EQ(order, batch == 1 ? "001122" : batch == 2 ? "010122" : "012012");
    std::vector<std::string> texts;
    for (const WrittenText& one : *written) texts.push_back(one.text);
    if (expected.empty()) expected = texts;
    EXPECT_EQ(texts, expected) << batch;
  }
}

// A character may have several tokens of a tokenizer.json. It is told with its last one, and bytes
// of none as U+FFFD.
TEST_F(TextWriterTest, CharactersOfATokenizerJsonComeWhole) {
  nlohmann::json file = TokenizerJson();
  file["added_tokens"] = nlohmann::json::array({AddedTokenJson(256, "</s>")});
  spec_.network = GptSpec{.layers = 1, .width = 8, .heads = 2, .context = 4, .vocabulary = 257};
  path_ = WriteWeights(5);
  const auto network = LoadDecodingNetwork(
      Writes::kText, {.from = path_}, NetworkThatWrites(Writes::kText, spec_).value(),
      MakeReferenceBackend({}), Tokenizer::Parse(file.dump()).value());
  ASSERT_TRUE(network.ok()) << network.status();
  size_t characters = 0, broken = 0;
  for (const uint64_t seed : {1, 2, 3, 4}) {
    std::string told;
    const auto take = [&](int, std::string_view more) {
      EXPECT_EQ(TextOfBytes(more), more) << "cut within a character";
      told += more;
      return true;
    };
    const auto texts =
        WriteTexts(*network, std::vector<std::string>{"\u6771"},
                   {.tokens = 200, .temperature = 5, .seed = seed}, {.on_text = take});
    ASSERT_TRUE(texts.ok()) << texts.status();
    EXPECT_EQ(told, texts->front().text);
    for (size_t i = 0; i < told.size(); ++i) {
      const bool replaced = told.compare(i, 3, "\ufffd") == 0;
      broken += replaced ? 1 : 0;
      characters += !replaced && (told[i] & 0xc0) == 0xc0 ? 1 : 0;
    }
  }
  EXPECT_GT(characters, 0) << "choose other seeds";
  EXPECT_GT(broken, 0) << "choose other seeds";
}

// The first text stops early, and is told while the others go on; one that stops early behind a
// longer one waits for it.
TEST_F(TextWriterTest, ATextIsToldWhenItAndAllBeforeItHaveEnded) {
  path_ = WriteWeights(5);
  const auto network = Load();
  ASSERT_TRUE(network.ok()) << network.status();
  const std::string first = Text("ab", {.tokens = 12, .temperature = 0});
  const std::vector<std::string> prompts = {"ab", "stagecoaches", "x", "zz", "ab"};
  std::vector<int> told;
  std::vector<size_t> tokens_left;  // when it was told
  std::vector<std::string> texts(prompts.size());
  size_t tokens = 0;
  const auto written =
      WriteTexts(*network, prompts, {.tokens = 12, .temperature = 0, .stops = {first.substr(3, 1)}},
                 {.on_text =
                      [&](int prompt, std::string_view text) {
                        texts[static_cast<size_t>(prompt)] += text;
                        tokens += text.size();
                        return true;
                      },
                  .on_whole =
                      [&](int prompt, const WrittenText& text) {
                        told.push_back(prompt);
                        tokens_left.push_back(tokens);
                        EXPECT_EQ(text.text, texts[static_cast<size_t>(prompt)]);
                      }});
  ASSERT_TRUE(written.ok()) << written.status();
  EXPECT_THAT(told, testing::ElementsAre(0, 1, 2, 3, 4));
  for (size_t i = 0; i < prompts.size(); ++i) EXPECT_EQ(texts[i], (*written)[i].text);
  EXPECT_LT(tokens_left.front(), tokens) << "the first one was told before the last token";
  EXPECT_LT(texts.back().size(), 12u);
  EXPECT_GT(tokens_left.back(), prompts.size() * texts.back().size())
      << "the last one waited for a longer one";
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
  EXPECT_THAT(
      std::string(
          WriteTexts(*network, {"a"}, {.stops = {"ab"}}, {.on_text = GoOn}).status().message()),
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
  const auto texts = WriteTexts(*network, {"caf\xc3\xa9"}, {}, {.on_text = GoOn});
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

// `generate` with exported weights.
class GenerateCommandTest : public TextWriterTest {
 protected:
  GenerateCommandTest() {
    context_.console = &console_;
    context_.stop = &stop_;
    context_.connect = [this](const ClientOptions&) -> absl::StatusOr<std::unique_ptr<JobClient>> {
      return std::make_unique<BorrowedJobClient>(&client_);
    };
    options_.weights.source = folder_.path();
    options_.weights.threads = 1;
  }
  // text: the fields of data.text beside its path.
  void Export(int64_t vocabulary, const std::string& text) {
    spec_.network.attributes.Set("vocabulary", vocabulary);
    WriteWeights(5);
    folder_.Write("stagecoach.json", absl::StrCat(R"(
name: tiny
seed: 3
model: {gpt: {layers: 1, width: 8, heads: 2, context: 4, vocabulary: )",
                                                  vocabulary, R"(}}
data: {text: {path: /data/input.txt)",
                                                  text, R"(}}
training: {steps: 1, batch_size: 1, micro_batches: 1, optimizer: {adamw: {}},
           learning_rate: {cosine: {peak: 0.001, warmup_steps: 0, final: 0.001}}}
pipeline: {stages: 1, schedule: gpipe}
)"));
  }
  std::string Run() {
    out_.str("");
    EXPECT_EQ(RunGenerate(options_, context_), 0) << notes_.str();
    return out_.str();
  }
  // What stages tell of the text: a byte a piece.
  void StagesWrite(const nlohmann::json& told) {
    const std::string text = told["text"];
    client_.records.clear();
    for (size_t i = 0; i <= text.size(); ++i) {
      v1::WatchJobResponse& record = client_.records.emplace_back();
      record.set_number(client_.records.size());
      *record.mutable_written()->add_texts() = ToProto({.offset = static_cast<int64_t>(i),
                                                        .text = text.substr(i, 1),
                                                        .done = i == text.size(),
                                                        .tokens = told["tokens"]});
    }
    v1::WatchJobResponse& last = client_.records.emplace_back();
    last.set_number(client_.records.size());
    last.mutable_finished()->set_state(v1::JOB_STATE_SUCCEEDED);
  }

  FakeJobClient client_;
  std::ostringstream out_, notes_;
  Console console_{out_, notes_, {}};
  StopSignal stop_;
  CommandContext context_;
  GenerateOptions options_;
};

TEST_F(GenerateCommandTest, AProgramGetsTheTextAsOneObject) {
  Export(128, "");
  options_.prompt = "a\"b";
  options_.tokens = 5;
  options_.seed = 9;
  const std::string plain = Run();
  context_.output = OutputFormat::kJson;
  const nlohmann::json told = nlohmann::json::parse(Run());
  EXPECT_EQ(told["prompt"], "a\"b");
  EXPECT_EQ(plain, absl::StrCat("a\"b", std::string(told["text"]), "\n")) << "ids below 128 only";
  EXPECT_EQ(told["tokens"], 5);
  EXPECT_EQ(told["seed"], 9);
  EXPECT_EQ(told["weights"], folder_.File("model.safetensors"));
}

// Requests a stop once a whole line is flushed.
class StopBehindALine final : public std::stringbuf {
 public:
  explicit StopBehindALine(StopSignal* stop) : stop_(stop) {}
  int sync() override {
    if (str().find('\n') != std::string::npos) stop_->Request(absl::CancelledError("enough"));
    return 0;
  }

 private:
  StopSignal* const stop_;
};

TEST_F(GenerateCommandTest, ATextIsPrintedBeforeTheNextGroupIsWritten) {
  Export(128, "");
  options_.prompts = folder_.Write("prompts", "a\nb\nc\n");
  options_.tokens = 5;
  options_.temperature = 0;
  options_.batch = 1;
  const std::string all = Run();
  ASSERT_EQ(std::count(all.begin(), all.end(), '\n'), 3) << all;
  StopBehindALine lines(&stop_);
  std::ostream out(&lines);
  Console console(out, notes_, {});
  context_.console = &console;
  EXPECT_EQ(RunGenerate(options_, context_), 130);
  EXPECT_EQ(lines.str(), all.substr(0, all.find('\n') + 1));
}

TEST_F(GenerateCommandTest, ABadPromptOfAFileIsRefusedBeforeAnyOutput) {
  Export(128, "");
  options_.prompts = folder_.Write("prompts", "a\n\n");
  for (const OutputFormat output : {OutputFormat::kTable, OutputFormat::kJson}) {
    context_.output = output;
    EXPECT_NE(RunGenerate(options_, context_), 0);
    EXPECT_EQ(out_.str(), "");
  }
  EXPECT_THAT(notes_.str(), testing::HasSubstr("prompt 2"));
}

// To the byte: the prompt first, and the space or line end that a text begins with.
TEST_F(GenerateCommandTest, StagesAndOneCellPrintTheSameOfTheSameText) {
  const std::vector<Piece> pieces =
      UsualPieces({{"\u2581", -1}, {"a", -2}, {"b", -2}, {"\u2581a", -3}});
  folder_.Write("pieces.model", ModelFileText(pieces));
  Export(std::ssize(pieces), absl::StrCat(", tokenizer: ", folder_.File("pieces.model")));
  options_.prompt = "a b";
  options_.tokens = 6;
  options_.temperature = 5;
  std::string first_bytes;
  for (options_.seed = 1; options_.seed <= 16; ++options_.seed) {
    options_.stages = {};
    context_.output = OutputFormat::kTable;
    const std::string plain = Run();
    context_.output = OutputFormat::kNdjson;
    const std::string object = Run();
    const nlohmann::json told = nlohmann::json::parse(object);
    first_bytes += std::string(told["text"]).substr(0, 1);
    StagesWrite(told);
    options_.stages.cluster = 2;
    EXPECT_EQ(Run(), object);
    context_.output = OutputFormat::kTable;
    EXPECT_EQ(Run(), plain);
    EXPECT_EQ(plain, absl::StrCat("a b", std::string(told["text"]), "\n"));
  }
  for (const char* first : {" ", "a", "\n"}) {
    EXPECT_THAT(first_bytes, testing::HasSubstr(first)) << "choose other seeds";
  }
}

}  // namespace
}  // namespace stagecoach
