// The job that writes texts with another job's weights, field by field.
#include "services/cli/trained/writing_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "plan/data/json_lines.h"
#include "plan/data/parallel_text.h"
#include "plan/data/text.h"
#include "plan/data/token_file.h"

namespace stagecoach {
namespace {

using testing::HasSubstr;

JobSpec TrainedJob() {
  JobSpec spec;
  spec.name = "my-run";
  spec.seed = 5;
  spec.precision = Precision::kBfloat16;
  spec.data = TextData{.path = "/data/text"};
  spec.training.steps = 100;
  spec.training.batch_size = 16;
  spec.training.micro_batches = 8;
  spec.training.freeze = {"wte"};
  spec.training.until.loss = 2;
  spec.training.average.decay = 0.9;
  spec.pipeline.stages = 8;
  spec.pipeline.min_stages = 2;
  spec.pipeline.schedule = "zero_bubble";
  spec.pipeline.partition = {.kind = PartitionSpec::Kind::kCuts, .cuts = {1, 2, 3, 4, 5, 6, 7}};
  spec.checkpoint.every_steps = 10;
  spec.snapshot.every_steps = 10;
  spec.evaluation.every_steps = 10;
  spec.initialize = {.from = "/old", .names = "torchvision", .except = {"head"}};
  spec.resume.job = "before";
  return spec;
}

WritingJobOptions Options() {
  WritingJobOptions options;
  options.name = "my-run";
  options.initialize.from = "/exports/my-run/model.safetensors";
  options.stages = 3;
  options.group_lines = 2;
  options.write = {.lines = {"a", "b", "c", "d"}, .generate = GenerateSpec{}};
  return options;
}

TEST(WritingJob, KeepsTheNetworkAndWhatOfTheTrainingMakesNoDifference) {
  JobSpec expected;
  expected.name = "generate-my-run";
  expected.seed = 5;
  expected.precision = Precision::kBfloat16;
  expected.data = TextData{.path = "/data/text"};
  expected.training.steps = 100;
  expected.training.batch_size = 4;
  expected.training.micro_batches = 2;
  expected.pipeline.stages = 3;
  expected.checkpoint.never = true;
  expected.initialize.from = "/exports/my-run/model.safetensors";
  expected.write = Options().write;
  EXPECT_EQ(MakeWritingJob(TrainedJob(), Options()).value(), expected);
}

TEST(WritingJob, TakesACheckpointOfAJob) {
  WritingJobOptions options = Options();
  options.initialize = {};
  options.resume = {.job = "my-run", .step = 7, .fresh_optimizer = true};
  options.seed = 9;
  options.precision = Precision::kFloat32;
  const JobSpec job = MakeWritingJob(TrainedJob(), options).value();
  EXPECT_EQ(job.resume, options.resume);
  EXPECT_EQ(job.precision, Precision::kFloat32);
  EXPECT_EQ(job.initialize, InitializeSpec());
  EXPECT_EQ(job.seed, 9u);
}

// Of four lines.
TEST(WritingJob, AMiniBatchHasAGroupForEachStageAndNoMoreThanThereAre) {
  const auto sizes = [](int64_t stages, int64_t group_lines) {
    WritingJobOptions options = Options();
    options.stages = stages;
    options.group_lines = group_lines;
    const TrainingSpec training = MakeWritingJob(TrainedJob(), options).value().training;
    return std::pair(training.batch_size, training.micro_batches);
  };
  EXPECT_EQ(sizes(1, 1), std::pair(int64_t{1}, int64_t{1})) << "one group after the other";
  EXPECT_EQ(sizes(2, 1), std::pair(int64_t{2}, int64_t{2}));
  EXPECT_EQ(sizes(9, 1), std::pair(int64_t{4}, int64_t{4}));
  EXPECT_EQ(sizes(2, 3), std::pair(int64_t{6}, int64_t{2})) << "all of one size";
  EXPECT_EQ(sizes(9, 4), std::pair(int64_t{4}, int64_t{1}));
}

TEST(WritingJob, AnyNameOfWeightsGivesAJobsName) {
  const auto name = [](const std::string& weights) {
    WritingJobOptions options = Options();
    options.name = weights;
    options.write.generate.reset();
    options.write.translate = TranslateSpec{};
    return MakeWritingJob(TrainedJob(), options).value().name;
  };
  EXPECT_EQ(name("My_run.2 \xc3\xa4"), "translate-my-run-2---");
  EXPECT_EQ(name(std::string(80, 'a')).size(), 63u);
}

TEST(WritingJob, AnotherTokenizerTakesThePlaceOfTheJobs) {
  WritingJobOptions options = Options();
  options.tokenizer = "/here.model";
  JobSpec trained = TrainedJob();
  trained.data = TextData{.path = "/data/text", .bytes = true};
  const auto text = MakeWritingJob(trained, options).value().data.As<TextData>();
  EXPECT_EQ(text.tokenizer, "/here.model");
  EXPECT_FALSE(text.bytes) << "not with a tokenizer";
  trained.data = JsonLinesData{.files = {"/a"}};
  EXPECT_EQ(MakeWritingJob(trained, options).value().data.As<JsonLinesData>().tokenizer,
            "/here.model");
  trained.data = ParallelTextData{.tokenizer = "/there.model", .sources = {"/a"}};
  const auto pairs = MakeWritingJob(trained, options).value().data.As<ParallelTextData>();
  EXPECT_EQ(pairs.tokenizer, "/here.model");
  EXPECT_THAT(pairs.sources, testing::ElementsAre("/a"));
  trained.data = TokenFileData{};
  const absl::Status refused = MakeWritingJob(trained, options).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("data.token_file, which has no tokenizer"));
}

TEST(LinesOfJob, AreUtf8TextOfABoundedSize) {
  EXPECT_TRUE(CheckLinesOfJob({std::string(kMostWriteBytes - 9, 'a'), "b"}).ok());
  const absl::Status large = CheckLinesOfJob({std::string(kMostWriteBytes - 8, 'a'), "b"});
  EXPECT_EQ(large.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(
      std::string(large.message()),
      testing::StartsWith(absl::StrCat("has ", kMostWriteBytes + 1, " bytes; stages take at most ",
                                       kMostWriteBytes, " at a time: ")));
  const absl::Status strange = CheckLinesOfJob({"a", "\xff"});
  EXPECT_EQ(strange.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(strange.message()), testing::StartsWith("is no UTF-8 text"));
}

TEST(LinesOfJob, HaveTheUsersNumbersInMessages) {
  const auto text = [](const std::string& message) {
    return InTheUsersWords(message, {.numbers = {1, 4, 9}});
  };
  EXPECT_EQ(text("write.lines[1]: has 70 tokens"), "line 4: has 70 tokens");
  EXPECT_EQ(text("stage 1: write.lines[2] and write.lines[0]."), "stage 1: line 9 and line 1.");
  for (const char* as_it_is : {"", "write.lines: none", "write.lines[3]: no such", "write.lines[1",
                               "write.lines[]", "write.lines[-1]"}) {
    EXPECT_EQ(text(as_it_is), as_it_is);
  }
}

TEST(FieldsOfJob, AreTheUsersOptionsInMessages) {
  const auto text = [](const std::string& message) {
    return InTheUsersWords(message, {.stages = "--local-stages"});
  };
  for (const auto& [field, option] :
       {std::pair("write.generate.stops[0]", "--stop"), std::pair("write.tag", "--tag"),
        std::pair("write.generate.stops[12]", "--stop"),
        std::pair("write.generate.tokens", "--tokens"),
        std::pair("write.generate.temperature", "--temperature"),
        std::pair("write.generate.top_k", "--top-k"), std::pair("write.generate.top_p", "--top-p"),
        std::pair("write.translate.beam", "--beam"),
        std::pair("write.translate.tokens", "--tokens"),
        std::pair("write.translate.length_penalty", "--length-penalty"),
        std::pair("training.batch_size", "--batch"),
        std::pair("pipeline.stages", "--local-stages")}) {
    EXPECT_EQ(text(absl::StrCat("stage 1: ", field, ": 7; at most 5")),
              absl::StrCat("stage 1: ", option, ": 7; at most 5"));
  }
  for (const char* as_it_is : {"write.generate.stops", "write.generate.stops[", "batch_size"}) {
    EXPECT_THAT(text(as_it_is), testing::Not(HasSubstr("--")));
  }
}

// As plan/plan.cc, plan/decoding_checks.cc, plan/job_spec_validation.cc,
// stage/cell/layer_profile.cc and stage/runtime/cell_writing.cc say them.
TEST(FieldsOfJob, AreTheUsersOptionsInTheRemediesOfServers) {
  const auto text = [](const std::string& message) { return InTheUsersWords(message, {}); };
  EXPECT_EQ(
      text("use more stages, or a smaller training.batch_size, write.translate.beam or tokens "
           "(keys and values take 5.0 MiB)"),
      "use more stages, or a smaller --batch, --beam or --tokens (keys and values take 5.0 "
      "MiB)");
  EXPECT_EQ(text("use more stages, or a smaller training.batch_size, write.generate.tokens (keys"),
            "use more stages, or a smaller --batch, --tokens (keys");
  EXPECT_EQ(text("write.translate: 99 rows of keys and values; at most 9: give a smaller beam or "
                 "tokens, or a smaller training.batch_size"),
            "translate: 99 rows of keys and values; at most 9: give a smaller --beam or --tokens, "
            "or a smaller --batch");
  EXPECT_EQ(text("give a smaller write.translate.beam or tokens, or a smaller training.batch_size"),
            "give a smaller --beam or --tokens, or a smaller --batch");
  EXPECT_EQ(text("give a smaller write.generate.tokens or training.batch_size"),
            "give a smaller --tokens or --batch");
  EXPECT_EQ(text("write.generate: data: image_folder"), "generate: data: image_folder");
  EXPECT_EQ(text("training.batch_size: 64; a micro-batch would have 9 tokens: raise micro_batches"),
            "--batch: 64; a micro-batch would have 9 tokens: lower --batch");
  EXPECT_EQ(text("32 samples: raise micro_batches or lower batch_size"),
            "32 samples: lower --batch");
}

}  // namespace
}  // namespace stagecoach
