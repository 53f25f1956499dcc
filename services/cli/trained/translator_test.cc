// Translations: against a search that computes the whole network for each hypothesis, and what is
// refused.
#include "services/cli/trained/translator.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "network/zoo/gpt.h"
#include "network/zoo/transformer.h"
#include "plan/data/parallel_text.h"
#include "stage/data/parallel/pair_network_testing.h"
#include "stage/layers/layer_testing.h"

namespace stagecoach {
namespace {

using testing::HasSubstr;

constexpr int64_t kContext = 8, kWidth = 16;

JobSpec PairJob() {
  JobSpec spec;
  spec.network = TransformerSpec{.vocabulary = kPairVocabulary,
                                 .source_context = 12,
                                 .target_context = kContext,
                                 .width = kWidth,
                                 .heads = 2,
                                 .encoder_layers = 1,
                                 .decoder_layers = 2,
                                 .tie = TransformerTie::kNone};
  spec.data = ParallelTextData{.tokenizer = "pieces.model", .sources = {"a"}, .targets = {"b"}};
  return spec;
}

// Initial weights, larger so that choices differ; and single letters as pieces.
// end_scale: of what the end's logit is made of; above 1, translations end at different places.
DecodingNetwork MadeNetwork(float end_scale = 1) {
  DecodingNetwork made;
  TrainedNetwork& trained = made.trained;
  trained.network = NetworkThatWrites(Writes::kTranslations, PairJob()).value();
  trained.backend = MakeReferenceBackend({});
  trained.cell =
      Cell::Create(trained.network, 0, static_cast<int>(trained.network.layers.size()),
                   /*seed=*/7, /*micro_batches=*/1, *trained.backend, nullptr, Cell::Head::kWhole)
          .value();
  for (Parameter* parameter : trained.cell->parameters()) {
    std::vector<float> values = ValuesOf<float>(*trained.backend, parameter->value);
    for (float& value : values) value *= 2.5f;
    trained.backend->CopyFromHost(std::as_bytes(std::span(values)), parameter->value);
  }
  for (Parameter* parameter : trained.cell->parameters()) {
    std::vector<float> values = ValuesOf<float>(*trained.backend, parameter->value);
    if (std::ssize(values) != kPairVocabulary * kWidth) continue;
    for (size_t i = 0; i < kWidth; ++i) values[kPairEnd * kWidth + i] *= end_scale;
    trained.backend->CopyFromHost(std::as_bytes(std::span(values)), parameter->value);
  }
  made.tokenizer = Tokenizer::Parse(ModelFileText(PairPieces())).value();
  made.context = kContext;
  return made;
}

std::unique_ptr<Translator> MadeTranslator(const TranslatingOptions& options) {
  return Translator::Create(MadeNetwork(), options).value();
}

std::vector<int64_t> LinesFrom(int64_t first, const std::vector<std::string>& sentences) {
  std::vector<int64_t> lines(sentences.size());
  std::iota(lines.begin(), lines.end(), first);
  return lines;
}

std::vector<Translator::Translation> Translated(const TranslatingOptions& options,
                                                const std::vector<std::string>& sentences) {
  std::vector<Translator::Translation> all;
  const absl::Status status = MadeTranslator(options)->Translate(
      sentences, LinesFrom(1, sentences), [] { return true; },
      [&](const Translator::Translation& one) { all.push_back(one); });
  EXPECT_TRUE(status.ok()) << status;
  return all;
}

// Log probabilities of the token behind `target`, by the whole network and nothing else.
std::vector<double> LogProbabilities(const DecodingNetwork& network,
                                     const std::vector<int32_t>& source,
                                     const std::vector<int32_t>& target) {
  const Network& whole = network.trained.network;
  Backend& backend = *network.trained.backend;
  std::vector<int32_t> sources = source, tokens = target;
  sources.resize(12, 0);
  tokens.resize(kContext, 0);
  Tensors inputs;
  for (const WireId id : network.trained.cell->wires().loaded) {
    const std::string& name = whole.input(id).name;
    const std::vector<int32_t> ids = name == "source" ? sources
                                     : name == "tokens"
                                         ? tokens
                                         : std::vector{static_cast<int32_t>(source.size())};
    inputs.push_back(TensorOf(backend, ids, DType::kI32, {std::ssize(ids)}));
  }
  const std::vector<float> logits = Evaluate(network.trained, std::move(inputs), 1).value();
  const auto row = logits.begin() + static_cast<ptrdiff_t>(target.size() - 1) * kPairVocabulary;
  double sum = 0;
  for (auto at = row; at != row + kPairVocabulary; ++at) sum += std::exp(static_cast<double>(*at));
  std::vector<double> found;
  for (auto at = row; at != row + kPairVocabulary; ++at) found.push_back(*at - std::log(sum));
  return found;
}

struct Plain {
  std::vector<int32_t> tokens;  // behind the begin
  double sum = 0, score = 0;
};

// The rules of decoding/beam_search.h in their shortest form.
Plain PlainBeamSearch(const DecodingNetwork& network, const std::vector<int32_t>& source, int beam,
                      double alpha) {
  std::vector<Plain> live = {{}}, done;
  const auto finish = [&](Plain one, size_t length) {
    one.score = one.sum / std::pow((5.0 + static_cast<double>(length)) / 6, alpha);
    done.push_back(std::move(one));
  };
  for (int64_t step = 0; step < kContext && std::ssize(done) < beam && !live.empty(); ++step) {
    struct Next {
      double sum;
      size_t parent;
      int32_t token;
    };
    std::vector<Next> all;
    for (size_t i = 0; i < live.size(); ++i) {
      std::vector<int32_t> target = {kPairBegin};
      target.insert(target.end(), live[i].tokens.begin(), live[i].tokens.end());
      const std::vector<double> row = LogProbabilities(network, source, target);
      for (int32_t token = 0; token < kPairVocabulary; ++token) {
        const bool empty = token == kPairEnd && step == 0;
        if (token == kPairBegin || token == kPairPad || empty) continue;
        all.push_back({live[i].sum + row[static_cast<size_t>(token)], i, token});
      }
    }
    std::stable_sort(all.begin(), all.end(),
                     [](const Next& a, const Next& b) { return a.sum > b.sum; });
    std::vector<Plain> next;
    for (int i = 0; i < 2 * beam && std::ssize(next) < beam; ++i) {
      Plain one = live[all[static_cast<size_t>(i)].parent];
      one.sum = all[static_cast<size_t>(i)].sum;
      if (all[static_cast<size_t>(i)].token == kPairEnd) {
        if (i < beam && std::ssize(done) < beam) finish(one, one.tokens.size() + 1);
        continue;
      }
      one.tokens.push_back(all[static_cast<size_t>(i)].token);
      next.push_back(std::move(one));
    }
    live = std::move(next);
  }
  for (Plain& one : live) {
    if (std::ssize(done) < beam) finish(one, one.tokens.size());
  }
  return *std::max_element(done.begin(), done.end(),
                           [](const Plain& a, const Plain& b) { return a.score < b.score; });
}

TEST(Translator, GivesWhatAPlainSearchGives) {
  const DecodingNetwork network = MadeNetwork();
  const std::vector<std::string> sentences = {"hello", "a b", "", "xyz!"};
  for (const int beam : {1, 2, 5}) {
    for (const double alpha : {0.0, 1.0}) {
      const auto translated = Translated({.beam = beam, .length_penalty = alpha}, sentences);
      ASSERT_EQ(translated.size(), sentences.size());
      EXPECT_EQ(translated[2].text, "");
      EXPECT_TRUE(translated[2].ended) << "an empty sentence is not cut off";
      for (size_t i = 0; i < sentences.size(); ++i) {
        if (sentences[i].empty()) continue;
        std::vector<int32_t> source = network.tokenizer->Encode(sentences[i]).value();
        source.push_back(kPairEnd);
        const Plain plain = PlainBeamSearch(network, source, beam, alpha);
        EXPECT_EQ(translated[i].text, network.tokenizer->Decode(plain.tokens).value())
            << sentences[i] << ", beam " << beam;
        EXPECT_NEAR(translated[i].score, plain.score, 1e-4 * std::abs(plain.score));
      }
    }
  }
}

TEST(Translator, TheSizeOfABatchChangesNothing) {
  const std::vector<std::string> sentences = {"hello", "a", "bcd", "xyz!", "a b c", "zz"};
  const auto alone = Translated({.batch = 1}, sentences);
  for (const int64_t batch : {2, 4, 32}) {
    const auto together = Translated({.batch = batch}, sentences);
    ASSERT_EQ(together.size(), alone.size());
    for (size_t i = 0; i < alone.size(); ++i) {
      EXPECT_EQ(together[i].text, alone[i].text) << sentences[i] << ", batch " << batch;
    }
  }
}

TEST(Translator, TagsAndLimits) {
  const auto plain = Translated({.beam = 2}, {"hello"});
  EXPECT_NE(Translated({.beam = 2, .tag = "<2de>"}, {"hello"})[0].score, plain[0].score);
  const auto short_one = Translated({.beam = 2, .most_tokens = 2}, {"hello"});
  ASSERT_GT(plain[0].tokens, 2);
  EXPECT_EQ(short_one[0].tokens, 2);
  EXPECT_FALSE(short_one[0].ended);
  EXPECT_THAT(std::string(Translator::Create(MadeNetwork(), {.tag = "<2xx>"}).status().message()),
              HasSubstr("--tag"));
}

TEST(Translator, NamesTheLineOfABadSentence) {
  const auto translate = [](const std::vector<std::string>& sentences) {
    return MadeTranslator({.beam = 1})
        ->Translate(
            sentences, LinesFrom(10, sentences), [] { return true; }, [](const auto&) {});
  };
  EXPECT_EQ(translate({"a", "a sentence that is too long"}).message(),
            "line 11: has 29 tokens, and the network reads 12; divide the sentence");
  EXPECT_THAT(std::string(translate({"caf\xc3"}).message()), HasSubstr("line 10"));
}

TEST(Translator, EndsWhenItIsStopped) {
  int asked = 0, told = 0;
  const absl::Status status = MadeTranslator({.beam = 1, .batch = 1})
                                  ->Translate(
                                      {"a", "b", "c"}, {1, 2, 3}, [&] { return ++asked < 3; },
                                      [&](const auto&) { ++told; });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_LT(told, 3);
}

TEST(Translator, TellsATranslationOnceItAndAllBeforeItAreFound) {
  const auto translator = [] {
    return Translator::Create(MadeNetwork(/*end_scale=*/30), {.beam = 1}).value();
  };
  std::vector<std::pair<int, std::string>> by_steps;  // that each takes alone
  for (char letter = 'a'; letter <= 'z'; ++letter) {
    int steps = 0;
    const absl::Status status = translator()->Translate(
        {std::string(1, letter)}, {1}, [&] { return ++steps > 0; }, [](const auto&) {});
    ASSERT_TRUE(status.ok()) << status;
    by_steps.emplace_back(steps, std::string(1, letter));
  }
  std::sort(by_steps.begin(), by_steps.end());
  ASSERT_LT(by_steps.front().first, by_steps.back().first) << "choose other sentences";
  std::vector<std::string> sentences;
  for (const auto& [steps, sentence] : by_steps) sentences.push_back(sentence);
  int steps = 0;
  std::vector<int> told;  // in which step
  const absl::Status status = translator()->Translate(
      sentences, LinesFrom(1, sentences), [&] { return ++steps > 0; },
      [&](const Translator::Translation&) { told.push_back(steps); });
  ASSERT_TRUE(status.ok()) << status;
  ASSERT_EQ(told.size(), sentences.size());
  EXPECT_TRUE(std::is_sorted(told.begin(), told.end()));
  EXPECT_LT(told.front(), told.back()) << "the first one was told before the group was over";
}

TEST(Translator, IsForJobsOnPairs) {
  JobSpec spec = PairJob();
  spec.data = JobSpec().data;
  EXPECT_THAT(std::string(NetworkThatWrites(Writes::kTranslations, spec).status().message()),
              HasSubstr("translations are written by networks trained on parallel_text"));
  spec = PairJob();
  spec.network = GptSpec{1, 8, 2, 4, kPairVocabulary, 0.1};
  EXPECT_THAT(std::string(NetworkThatWrites(Writes::kTranslations, spec).status().message()),
              HasSubstr("reads no source"));
}

}  // namespace
}  // namespace stagecoach
