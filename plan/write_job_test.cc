// Jobs with `write`: which are valid, and what the plan says of their memory.
#include <functional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "network/objectives/cross_entropy.h"
#include "network/zoo/gpt.h"
#include "network/zoo/transformer.h"
#include "plan/costs/decoding_memory.h"
#include "plan/data/parallel_text.h"
#include "plan/data/text.h"
#include "plan/plan.h"

namespace stagecoach {
namespace {

using testing::HasSubstr;

JobSpec WritingJob() {
  JobSpec spec;
  spec.name = "writes";
  spec.network = GptSpec{.layers = 4, .width = 32, .heads = 2, .context = 256, .vocabulary = 128};
  spec.data = TextData{.path = "/data/a", .bytes = true};
  spec.training.steps = 10;
  spec.training.batch_size = 6;
  spec.training.micro_batches = 2;
  spec.pipeline.stages = 2;
  spec.initialize.from = "/exports/a";
  spec.write = WriteSpec{.lines = {"Once", "It was"}, .generate = GenerateSpec{.tokens = 50}};
  return spec;
}

NetworkSpec Transformer(int64_t width, int64_t encoder_layers) {
  NetworkSpec network = TransformerSpec{.vocabulary = 100,
                                        .source_context = 12,
                                        .target_context = 10,
                                        .width = width,
                                        .hidden = 4 * width,
                                        .heads = 2,
                                        .encoder_layers = encoder_layers,
                                        .decoder_layers = 3};
  network.objective = CrossEntropySpec{.ignore_index = 0};
  return network;
}

JobSpec TranslatingJob() {
  JobSpec spec = WritingJob();
  spec.network = Transformer(/*width=*/8, /*encoder_layers=*/2);
  ParallelTextData data;
  data.tokenizer = "/data/pieces.model";
  data.sources = {"/data/a"};
  data.targets = {"/data/b"};
  spec.data = data;
  spec.write = WriteSpec{.lines = {"a b"}, .translate = TranslateSpec{.beam = 4}};
  return spec;
}

TEST(WriteJob, TakesContinuationsAndTranslations) {
  for (JobSpec spec : {WritingJob(), TranslatingJob()}) {
    EXPECT_TRUE(ExpandValidJob(spec).ok()) << ExpandValidJob(spec).status();
    spec.initialize = {};
    spec.resume.job = "trained";
    EXPECT_TRUE(ExpandValidJob(spec).ok()) << ExpandValidJob(spec).status();
  }
}

TEST(WriteJob, RefusesWhatCannotBeWritten) {
  struct Row {
    const char* says;
    std::function<void(JobSpec*)> spoil;
  };
  const std::vector<Row> rows = {
      {"write.lines: none; give the sentences", [](JobSpec* s) { s->write->lines.clear(); }},
      {"write.lines[1]: \"\"; must not be empty", [](JobSpec* s) { s->write->lines[1] = ""; }},
      {"write.lines: 786433 bytes; at most 786432",
       [](JobSpec* s) {
         s->write->lines = {"1", std::string((768 << 10) - 8, 'a')};
       }},
      {"write: neither; give translate or generate",
       [](JobSpec* s) { s->write->generate.reset(); }},
      {"write: translate and generate", [](JobSpec* s) { s->write->translate.emplace(); }},
      {"write: no weights; name trained ones", [](JobSpec* s) { s->initialize = {}; }},
      {"evaluation: given", [](JobSpec* s) { s->evaluation = {.every_steps = 2, .batches = 1}; }},
      {"write.tag: \"<2de>\"", [](JobSpec* s) { s->write->tag = "<2de>"; }},
      {"write.generate.tokens: 0", [](JobSpec* s) { s->write->generate->tokens = 0; }},
      {"write.generate.temperature: -1", [](JobSpec* s) { s->write->generate->temperature = -1; }},
      {"write.generate.top_k: -1", [](JobSpec* s) { s->write->generate->top_k = -1; }},
      {"write.generate.top_p: 0; must be above 0",
       [](JobSpec* s) { s->write->generate->top_p = 0; }},
      {"write.translate: data: text; translations are written by networks trained on parallel_text",
       [](JobSpec* s) {
         s->write->generate.reset();
         s->write->translate.emplace();
       }},
  };
  for (const Row& row : rows) {
    JobSpec spec = WritingJob();
    row.spoil(&spec);
    const absl::Status status = ExpandValidJob(spec).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << row.says;
    EXPECT_THAT(std::string(status.message()), HasSubstr(row.says));
  }
}

// Seen by stages only, which get a network from elsewhere.
TEST(WriteJob, ATrainingJobNeedsSomethingToTrain) {
  JobSpec spec = WritingJob();
  const Network network = ExpandJob(spec).value();
  EXPECT_TRUE(ValidateJob(spec, network).ok());
  spec.write.reset();
  EXPECT_THAT(std::string(ValidateJob(spec, network).message()),
              HasSubstr("model: trains nothing"));
}

TEST(WriteJob, RefusesTranslationsThatDoNotFit) {
  for (const auto& [says, translate] :
       {std::pair("write.translate.beam: 11; at most the network's target positions, 10",
                  TranslateSpec{.beam = 11}),
        std::pair("write.translate.batches: 1", TranslateSpec{.batches = 1}),
        std::pair("write.translate.beam: 0", TranslateSpec{.beam = 0})}) {
    JobSpec spec = TranslatingJob();
    spec.write->translate = translate;
    EXPECT_THAT(std::string(ExpandValidJob(spec).status().message()), HasSubstr(says));
  }
  JobSpec generating = TranslatingJob();
  generating.write->translate.reset();
  generating.write->generate.emplace();
  EXPECT_THAT(std::string(ExpandValidJob(generating).status().message()),
              HasSubstr("write.generate: data: parallel_text"));
}

// Of each prompt its bytes, a few for each of its lines and the tokens behind it, in the fullest mini-batch.
TEST(WriteJob, CountsRowsOfKeysAndValues) {
  JobSpec spec = WritingJob();
  const Network network = ExpandJob(spec).value();
  EXPECT_EQ(PoolRowsOf(spec, network), (1 + 4 + 8 + 50) + (1 + 6 + 8 + 50));
  spec.training.batch_size = 1;
  spec.training.micro_batches = 1;
  EXPECT_EQ(PoolRowsOf(spec, network), 1 + 6 + 8 + 50);
  spec.write->lines.back() = "It\nwa";
  EXPECT_EQ(PoolRowsOf(spec, network), 1 + 5 + 2 * 8 + 50);
  spec.write->generate->tokens = 1000;
  EXPECT_EQ(PoolRowsOf(spec, network), 1 + 256) << "the context";
  EXPECT_EQ(ComputedSamples(spec, network), 1) << "a step has no more rows than a sample";
}

// Symptom: of two stages the first had the encoder, and nothing to do after the first token.
TEST(WriteJob, CutsWhereEachTokenIsWorkForAllStages) {
  JobSpec spec = TranslatingJob();
  spec.network = Transformer(/*width=*/64, /*encoder_layers=*/3);
  JobSpec training = spec;
  training.write.reset();
  const Network network = ExpandJob(spec).value();
  const auto plan = MakePlan(spec, network, 2, {}, {});
  const auto trained = MakePlan(training, ExpandJob(training).value(), 2, {}, {});
  ASSERT_TRUE(plan.ok() && trained.ok()) << plan.status() << trained.status();
  EXPECT_GT(plan->partition.first(1), trained->partition.first(1));
  EXPECT_EQ(plan->stages[0].backward_seconds, 0);
  int64_t first = 0, last = 0;  // bytes of keys and values
  const DecodingSizes sizes = *DecodingSizesOf(spec, network);
  for (int i = 0; i < static_cast<int>(network.layers.size()); ++i) {
    (i < plan->partition.first(1) ? first : last) += sizes.layers[static_cast<size_t>(i)];
  }
  EXPECT_GT(first, 0) << "layers of the decoder";
  EXPECT_GT(last, 0);
}

// What trains takes gradients, an optimizer and stashes; what writes takes none of them.
TEST(WriteJob, APlanTakesParametersKeysAndValues) {
  const JobSpec spec = WritingJob();
  JobSpec training = spec;
  training.write.reset();
  const auto plan = MakePlan(spec, ExpandJob(spec).value(), 2, {}, {});
  const auto trained = MakePlan(training, ExpandJob(training).value(), 2, {}, {});
  ASSERT_TRUE(plan.ok() && trained.ok()) << plan.status() << trained.status();
  int64_t parameters = 0;
  for (const StagePlan& stage : plan->stages) {
    EXPECT_EQ(stage.memory.gradients + stage.memory.optimizer, 0);
    EXPECT_GT(stage.memory.decoding, 0);
    parameters += stage.memory.parameters;
  }
  EXPECT_EQ(parameters,
            trained->stages[0].memory.parameters + trained->stages[1].memory.parameters);

  const int64_t limit = plan->stages[0].memory.total() - 1;
  const auto refused =
      MakePlan(spec, ExpandJob(spec).value(), 1, {.stage_memory_limit_bytes = limit}, {});
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr("more stages, or a smaller training.batch_size, write.generate.tokens"));
}

}  // namespace
}  // namespace stagecoach
