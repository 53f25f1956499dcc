// Which jobs may translate in their evaluations, and what that takes.
#include "plan/decoding_checks.h"

#include <functional>
#include <limits>
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

NetworkSpec SmallTransformer(int64_t target_context) {
  NetworkSpec network = TransformerSpec{.vocabulary = 100,
                                        .source_context = 12,
                                        .target_context = target_context,
                                        .width = 8,
                                        .hidden = 16,
                                        .heads = 2,
                                        .encoder_layers = 2,
                                        .decoder_layers = 3};
  network.objective = CrossEntropySpec{.ignore_index = 0};
  return network;
}

JobSpec Translating() {
  JobSpec spec;
  spec.name = "pairs";
  spec.network = SmallTransformer(/*target_context=*/10);
  ParallelTextData data;
  data.tokenizer = "/data/pieces.model";
  data.sources = {"/data/a"};
  data.targets = {"/data/b"};
  spec.data = data;
  spec.training.steps = 10;
  spec.training.batch_size = 6;
  spec.training.micro_batches = 3;
  spec.pipeline.stages = 1;
  spec.evaluation = {.every_steps = 5, .batches = 4, .translate = TranslateSpec{}};
  return spec;
}

TEST(EvaluationTranslate, TakesJobsThatTranslate) {
  JobSpec spec = Translating();
  spec.evaluation.translate =
      TranslateSpec{.beam = 10, .length_penalty = 0, .tokens = 3, .batches = 4};
  spec.training.until.bleu = 35;
  const auto network = ExpandValidJob(spec);
  EXPECT_TRUE(network.ok()) << network.status();
}

TEST(EvaluationTranslate, RefusesWhatCannotBeTranslated) {
  struct Row {
    const char* says;
    std::function<void(JobSpec*)> spoil;
  };
  const std::vector<Row> rows = {
      {"evaluation.translate: given; set evaluation.every_steps",
       [](JobSpec* s) { s->evaluation.every_steps = s->evaluation.batches = 0; }},
      {"evaluation.translate.beam: 0", [](JobSpec* s) { s->evaluation.translate->beam = 0; }},
      {"evaluation.translate.beam: 65", [](JobSpec* s) { s->evaluation.translate->beam = 65; }},
      {"evaluation.translate.beam: 11; at most the network's target positions, 10",
       [](JobSpec* s) { s->evaluation.translate->beam = 11; }},
      {"evaluation.translate: 3156213760 rows of keys and values; at most 2147483647: give a "
       "smaller beam or tokens, or a smaller training.batch_size",
       [](JobSpec* s) {
         s->evaluation.translate->beam = 10;
         s->network = SmallTransformer(/*target_context=*/300);
         s->training.batch_size = 1 << 20;
         s->training.micro_batches = 1 << 12;
       }},
      {"evaluation.translate.length_penalty: -1",
       [](JobSpec* s) { s->evaluation.translate->length_penalty = -1; }},
      {"evaluation.translate.tokens: -1", [](JobSpec* s) { s->evaluation.translate->tokens = -1; }},
      {"evaluation.translate.batches: 5; at most evaluation.batches = 4",
       [](JobSpec* s) { s->evaluation.translate->batches = 5; }},
      {"evaluation.translate: data: text; translations are written by networks trained on "
       "parallel_text",
       [](JobSpec* s) {
         s->network = GptSpec{.layers = 1, .width = 4, .heads = 1, .context = 4, .vocabulary = 8};
         s->data = TextData{.path = "/data/a", .bytes = true};
       }},
      {"evaluation.translate: model: gpt; reads no source",
       [](JobSpec* s) {
         s->network = GptSpec{.layers = 1, .width = 4, .heads = 1, .context = 4, .vocabulary = 8};
         s->network.objective = CrossEntropySpec{.ignore_index = 0};
       }},
      {"training.until.bleu: 30; translations are measured with evaluation.translate: give it",
       [](JobSpec* s) {
         s->evaluation.translate.reset();
         s->training.until.bleu = 30;
       }},
      {"training.until.bleu: 101", [](JobSpec* s) { s->training.until.bleu = 101; }},
  };
  for (const Row& row : rows) {
    JobSpec spec = Translating();
    row.spoil(&spec);
    const absl::Status status = ExpandValidJob(spec).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << row.says;
    EXPECT_THAT(std::string(status.message()), HasSubstr(row.says));
  }
}

// By hand, in bytes: keys and values of 8 numbers each, held keys and values likewise.
TEST(EvaluationTranslate, CountsKeysValuesAndHeldSources) {
  JobSpec spec = Translating();
  spec.evaluation.translate = TranslateSpec{.beam = 2, .tokens = 4};
  const Network network = ExpandJob(spec).value();
  const auto sizes = DecodingSizesOf(spec, network);
  ASSERT_TRUE(sizes.has_value());
  const int64_t rows = 6 * 2 * (4 + 1), floats = 4;
  const int64_t pool = rows * 2 * 8 * floats, held = 6 * 12 * 2 * 8 * floats;
  int64_t all = 0;
  for (const int64_t bytes : sizes->layers) all += bytes;
  // Lengths of the sources are held beside them.
  EXPECT_GE(all, 3 * (pool + held));
  EXPECT_LE(all, 3 * (pool + held + 6 * floats));
  EXPECT_EQ(sizes->logits, 2 * (2 * 2) * 100 * floats);
  const int last = static_cast<int>(sizes->layers.size());
  EXPECT_EQ(sizes->Of(0, last, 1000), 1000 + all + sizes->rows_held + sizes->logits);
  EXPECT_EQ(sizes->Of(0, 1, 1000), 1000 + sizes->rows_held) << "an embedding keeps nothing";

  spec.evaluation.translate.reset();
  EXPECT_FALSE(DecodingSizesOf(spec, network).has_value());
}

// Symptom: a plan was refused for keys and values with remedies that do not touch them.
TEST(EvaluationTranslate, ARefusedPlanSaysWhatWouldNeedLess) {
  JobSpec spec = Translating();
  spec.evaluation.translate->beam = 10;
  const Network network = ExpandJob(spec).value();
  const auto plan = MakePlan(spec, network, 1, {.stage_memory_limit_bytes = 100'000}, {});
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kResourceExhausted) << plan.status();
  EXPECT_THAT(std::string(plan.status().message()),
              HasSubstr("use a smaller evaluation.translate.beam or tokens (translations take 0."));
  spec.evaluation.translate.reset();
  EXPECT_THAT(
      std::string(
          MakePlan(spec, network, 1, {.stage_memory_limit_bytes = 100'000}, {}).status().message()),
      HasSubstr("use more stages"));
}

}  // namespace
}  // namespace stagecoach
