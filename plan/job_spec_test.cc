// Protects the door: what users write wrong is refused with the field, the value and the remedy.
#include "plan/job/job_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "network/layers/embedding.h"
#include "network/layers/linear.h"
#include "network/layers/norms.h"
#include "network/objectives/cross_entropy.h"
#include "network/zoo/amoebanet/amoebanet.h"
#include "network/zoo/gpt.h"
#include "network/zoo/sequence.h"
#include "plan/data/idx.h"
#include "plan/data/text.h"
#include "plan/job/learning_rate_kinds.h"
#include "plan/learning_rates/constant.h"
#include "plan/learning_rates/cosine.h"
#include "plan/learning_rates/exponential.h"
#include "plan/learning_rates/inverse_square_root.h"
#include "plan/learning_rates/linear.h"
#include "plan/learning_rates/noam.h"
#include "plan/learning_rates/step.h"
#include "plan/optimizers/adamw.h"
#include "plan/optimizers/sgd.h"

namespace stagecoach {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

JobSpec GoodSpec() {
  JobSpec spec;
  spec.name = "gpt-text";
  spec.seed = 1;
  spec.network = GptSpec{.layers = 6, .width = 384, .heads = 6, .context = 256, .vocabulary = 256};
  spec.data = TextData{.path = "input.txt"};
  spec.training = {.steps = 200, .batch_size = 32, .micro_batches = 8, .gradient_clip_norm = 1.0};
  spec.training.optimizer = AdamWSpec{.beta1 = 0.9, .beta2 = 0.95, .weight_decay = 0.1};
  spec.training.learning_rate = CosineRate{.peak = 3e-4, .warmup_steps = 20, .final = 3e-5};
  spec.pipeline.stages = 2;
  spec.checkpoint = {.every_steps = 50, .keep = 3};
  spec.evaluation = {.every_steps = 50, .batches = 8};
  return spec;
}

struct BadField {
  const char* message;  // how it begins
  std::function<void(JobSpec*)> spoil;
};

// Sets a field of the network.
void Gpt(JobSpec* spec, const char* field, AttributeValue value) {
  spec->network.attributes.Set(field, value);
}
void SetAdam(JobSpec* spec, const char* field, double value) {
  spec->training.optimizer.attributes.Set(field, value);
}
void SetRate(JobSpec* spec, const char* field, AttributeValue value) {
  spec->training.learning_rate.attributes.Set(field, std::move(value));
}

absl::Status ValidateJobSpec(const JobSpec& spec) { return ExpandValidJob(spec).status(); }

void ExpectRefused(const std::vector<BadField>& fields) {
  for (const BadField& field : fields) {
    JobSpec spec = GoodSpec();
    field.spoil(&spec);
    const absl::Status status = ValidateJobSpec(spec);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << field.message;
    EXPECT_THAT(std::string(status.message()), StartsWith(field.message));
  }
}

TEST(ValidateJobSpec, TakesTheSpecOfTheDocumentation) {
  const absl::Status status = ValidateJobSpec(GoodSpec());
  EXPECT_TRUE(status.ok()) << status;
}

TEST(ValidateJobSpec, TakesTheEdges) {
  JobSpec spec = GoodSpec();
  spec.name = std::string(63, 'a');
  spec.pipeline.stages = 0;  // auto
  spec.training.micro_batches = 32;
  SetRate(&spec, "warmup_steps", int64_t{200});
  spec.training.gradient_clip_norm = 0;
  spec.evaluation = {};
  spec.checkpoint = {.every_steps = 0, .keep = 1};
  spec.training.optimizer = SgdSpec{.momentum = 0.9};
  EXPECT_TRUE(ValidateJobSpec(spec).ok());
  spec.pipeline.stages = 3;
  spec.pipeline.partition = {.kind = PartitionSpec::Kind::kCuts, .cuts = {1, 14}};
  EXPECT_TRUE(ValidateJobSpec(spec).ok());
  spec.initialize = {.from = "/a/model.safetensors", .except = {"model/0000/*"}};
  EXPECT_TRUE(ValidateJobSpec(spec).ok());
  spec.initialize = {};
  spec.resume.job = "other";
  spec.resume.step = 100;
  EXPECT_TRUE(ValidateJobSpec(spec).ok());
}

TEST(ValidateJobSpec, RefusesBadNamesAndPaths) {
  ExpectRefused({
      {"name: \"\"; must be 1 to 63", [](JobSpec* s) { s->name.clear(); }},
      {"name: \"A\"; must be", [](JobSpec* s) { s->name = std::string("A"); }},
      {"name: \"a_b\"; must be", [](JobSpec* s) { s->name = "a_b"; }},
      {"name: \"../x\"; must be", [](JobSpec* s) { s->name = "../x"; }},
      {"name: \"aaaaaaaa", [](JobSpec* s) { s->name = std::string(64, 'a'); }},
      {"data.text.path: \"\"; must name", [](JobSpec* s) { s->data = TextData{}; }},
      {"data.text.path: 5000 bytes",
       [](JobSpec* s) { s->data = TextData{.path = std::string(5000, 'x')}; }},
      {"data.text.path: \"S3://a/b\"; a path in a bucket begins with s3://, in small letters",
       [](JobSpec* s) { s->data = TextData{.path = "S3://a/b"}; }},
      {"initialize.from: \"S3://a/b\"; a path in a bucket begins with s3://",
       [](JobSpec* s) { s->initialize.from = "S3://a/b"; }},
      {"resume.job: \"A\"", [](JobSpec* s) { s->resume.job = std::string("A"); }},
      {"resume.step: 3; needs resume.job", [](JobSpec* s) { s->resume.step = 3; }},
      {"resume.step: -2; must be >= -1", [](JobSpec* s) { s->resume.step = -2; }},
      {"initialize.from: 5000 bytes; at most 4096",
       [](JobSpec* s) { s->initialize.from = std::string(5000, 'x'); }},
      {"initialize.from: \"/a\"; the job has the weights of resume.job=other already: leave one",
       [](JobSpec* s) {
         s->initialize.from = "/a";
         s->resume.job = "other";
       }},
      {"initialize.names: \"torchvison\"; there is no table of names \"torchvison\"; did you mean",
       [](JobSpec* s) { s->initialize = {.from = "/a", .names = "torchvison"}; }},
      {"initialize.names: \"timm\"; the network is none that timm has names for: it does not begin",
       [](JobSpec* s) { s->initialize = {.from = "/a", .names = "timm"}; }},
      {"initialize.except: 257 patterns; at most 256",
       [](JobSpec* s) {
         s->initialize = {.from = "/a", .except = std::vector<std::string>(257, "*")};
       }},
  });
}

TEST(ValidateJobSpec, RefusesBadModels) {
  ExpectRefused({
      {"model.gpt.layers: 0; must be >= 1", [](JobSpec* s) { Gpt(s, "layers", int64_t{0}); }},
      {"model.gpt.layers: 4999; must be <= 4998",
       [](JobSpec* s) { Gpt(s, "layers", int64_t{4999}); }},
      {"model.gpt.width: -1; must be >= 1", [](JobSpec* s) { Gpt(s, "width", int64_t{-1}); }},
      {"model.gpt.heads: 5; must divide the width 384",
       [](JobSpec* s) { Gpt(s, "heads", int64_t{5}); }},
      {"model.gpt.heads: 0; must be >= 1", [](JobSpec* s) { Gpt(s, "heads", int64_t{0}); }},
      {"model.gpt.context: 0; must be >= 1", [](JobSpec* s) { Gpt(s, "context", int64_t{0}); }},
      {"model.gpt.vocabulary: 1048577; must be <= 1048576",
       [](JobSpec* s) { Gpt(s, "vocabulary", int64_t{(1 << 20) + 1}); }},
      {"model.gpt.dropout: 1; must be a number in [0, 1)",
       [](JobSpec* s) { Gpt(s, "dropout", 1.0); }},
      {"model.gpt.dropout: nan; must be", [](JobSpec* s) { Gpt(s, "dropout", kNan); }},
      {"model.gpt.dropout: -0.1; must be", [](JobSpec* s) { Gpt(s, "dropout", -0.1); }},
      {"model.gpt: over 1099511627776 parameters",
       [](JobSpec* s) {
         Gpt(s, "layers", int64_t{4000});
         Gpt(s, "width", int64_t{1 << 15});
         Gpt(s, "heads", int64_t{1});
       }},
  });
}

TEST(ValidateJobSpec, RefusesBadTraining) {
  ExpectRefused({
      {"training.steps: 0; must be >= 1", [](JobSpec* s) { s->training.steps = 0; }},
      {"training.steps: 9223372036854775807; must be <= 1000000000",
       [](JobSpec* s) { s->training.steps = std::numeric_limits<int64_t>::max(); }},
      {"training.batch_size: -3; must be >= 1", [](JobSpec* s) { s->training.batch_size = -3; }},
      {"training.micro_batches: 0; must be >= 1",
       [](JobSpec* s) { s->training.micro_batches = 0; }},
      {"training.micro_batches: 33; must be <= training.batch_size = 32",
       [](JobSpec* s) { s->training.micro_batches = 33; }},
      {"training.batch_size: 1048576; a micro-batch would have",
       [](JobSpec* s) {
         s->training.batch_size = 1 << 20;
         s->training.micro_batches = 1;
         Gpt(s, "context", int64_t{1 << 14});
       }},
      {"training.micro_batches: 1; with dropout, layer 1 (residual(layer_norm, attention, "
       "dropout))",
       [](JobSpec* s) {
         Gpt(s, "dropout", 0.1);
         Gpt(s, "context", int64_t{1 << 14});
         s->training.micro_batches = 1;
       }},
      {"training.gradient_clip_norm: nan",
       [](JobSpec* s) { s->training.gradient_clip_norm = kNan; }},
      {"training.gradient_clip_norm: inf",
       [](JobSpec* s) { s->training.gradient_clip_norm = kInfinity; }},
      {"training.max_nonfinite_steps: -1; must be >= 0",
       [](JobSpec* s) { s->training.max_nonfinite_steps = -1; }},
  });
}

TEST(ValidateJobSpec, RefusesBadOptimizersAndRates) {
  ExpectRefused({
      {"training.optimizer.adamw.beta1: 1; must be a number in [0, 1)",
       [](JobSpec* s) { SetAdam(s, "beta1", 1); }},
      {"training.optimizer.adamw.beta2: -0.5", [](JobSpec* s) { SetAdam(s, "beta2", -0.5); }},
      {"training.optimizer.adamw.epsilon: 0; must be a number in (0, 1]",
       [](JobSpec* s) { SetAdam(s, "epsilon", 0); }},
      {"training.optimizer.adamw.weight_decay: inf",
       [](JobSpec* s) { SetAdam(s, "weight_decay", kInfinity); }},
      {"training.optimizer.sgd.momentum: 1;",
       [](JobSpec* s) { s->training.optimizer = SgdSpec{.momentum = 1}; }},
      {"training.optimizer.sgd.weight_decay: -1;",
       [](JobSpec* s) { s->training.optimizer = SgdSpec{.weight_decay = -1}; }},
      {"training.learning_rate.cosine.peak: -1;", [](JobSpec* s) { SetRate(s, "peak", -1.0); }},
      {"training.learning_rate.cosine.peak: 0; must be above 0, or nothing is learned",
       [](JobSpec* s) {
         SetRate(s, "peak", 0.0);
         SetRate(s, "final", 0.0);
       }},
      {"training.learning_rate.linear.peak: nan;",
       [](JobSpec* s) { s->training.learning_rate = LinearRate{.peak = kNan}; }},
      {"training.learning_rate.inverse_square_root.final: 1; must be a number in [0, 0.0003]",
       [](JobSpec* s) {
         s->training.learning_rate = InverseSquareRootRate{.peak = 3e-4, .final = 1};
       }},
      {"training.learning_rate.cosine.warmup_steps: 201; must be <= training.steps = 200",
       [](JobSpec* s) { SetRate(s, "warmup_steps", int64_t{201}); }},
      {"training.learning_rate.cosine.warmup_steps: -1; must be >= 0",
       [](JobSpec* s) { SetRate(s, "warmup_steps", int64_t{-1}); }},
  });
}

// A name that is near a known one is answered with it.
TEST(ValidateJobSpec, RefusesKindsThatThereAreNot) {
  ExpectRefused({
      {"data: there is no data source \"txt\"; did you mean \"text\"?",
       [](JobSpec* s) { s->data.kind = "txt"; }},
      {"data: there is no data source \"\"", [](JobSpec* s) { s->data = DataSpec(); }},
      {"data.text.paths is not known; did you mean \"path\"?",
       [](JobSpec* s) { s->data.attributes.Set("paths", "a"); }},
      {"training.optimizer: there is no optimizer \"adam\"; did you mean \"adamw\"?",
       [](JobSpec* s) { s->training.optimizer.kind = "adam"; }},
      {"training.optimizer.adamw.momentum is not known",
       [](JobSpec* s) { SetAdam(s, "momentum", 0.5); }},
      {"training.learning_rate: there is no form of the learning rate \"cosin\"; did you mean "
       "\"cosine\"?",
       [](JobSpec* s) { s->training.learning_rate.kind = "cosin"; }},
      {"pipeline.schedule: there is no schedule \"gpip\"; did you mean \"gpipe\"?",
       [](JobSpec* s) { s->pipeline.schedule = "gpip"; }},
  });
}

void Cut(JobSpec* spec, int64_t stages, std::vector<int64_t> cuts) {
  spec->pipeline.stages = stages;
  spec->pipeline.partition = {.kind = PartitionSpec::Kind::kCuts, .cuts = std::move(cuts)};
}

// `validate` took what `submit` then refused.
TEST(ValidateJobSpec, RefusesMoreMicroBatchesThanCanBePlannedOnItsStages) {
  const auto on = [](int64_t stages, int64_t micro_batches) {
    JobSpec spec = GoodSpec();
    Gpt(&spec, "layers", int64_t{16});
    spec.pipeline.stages = stages;
    spec.training.micro_batches = spec.training.batch_size = micro_batches;
    return ValidateJobSpec(spec);
  };
  EXPECT_TRUE(on(17, 15420).ok()) << on(17, 61680);
  EXPECT_TRUE(on(0, 65536).ok()) << "how many stages it will be is not known: " << on(0, 65536);
  EXPECT_THAT(on(17, 65536).message(),
              HasSubstr("training.micro_batches: 65536; with pipeline.stages=17 at most 15420"));
}

TEST(ValidateJobSpec, RefusesBadPipelines) {
  ExpectRefused({
      {"pipeline.stages: -1; must be >= 0", [](JobSpec* s) { s->pipeline.stages = -1; }},
      {"pipeline.stages: 16; the model has 15 layers and a stage needs one: use at most 15",
       [](JobSpec* s) { s->pipeline.stages = 16; }},
      {"pipeline.min_stages: -1; must be >= 0", [](JobSpec* s) { s->pipeline.min_stages = -1; }},
      {"pipeline.min_stages: 3; must be <= 2",
       [](JobSpec* s) {
         s->pipeline.stages = 2;
         s->pipeline.min_stages = 3;
       }},
      {"pipeline.min_stages: 16; must be <= 15",
       [](JobSpec* s) {
         s->pipeline.stages = 0;
         s->pipeline.min_stages = 16;
       }},
      {"pipeline.stages: auto; cuts fix the number of stages: write stages: 3",
       [](JobSpec* s) {
         Cut(s, 0, {3, 6});
       }},
      {"pipeline.partition.cuts: 1 cuts; must be 2 for pipeline.stages = 3",
       [](JobSpec* s) { Cut(s, 3, {3}); }},
      {"pipeline.partition.cuts[1]: 3; must be > 3: cuts ascend",
       [](JobSpec* s) {
         Cut(s, 3, {3, 3});
       }},
      {"pipeline.partition.cuts[0]: 0; must be >= 1", [](JobSpec* s) { Cut(s, 2, {0}); }},
      {"pipeline.partition.cuts[0]: 15; must be <= 14", [](JobSpec* s) { Cut(s, 2, {15}); }},
      {"pipeline.partition.cuts: 1 cuts; must be empty",
       [](JobSpec* s) { s->pipeline.partition.cuts = {3}; }},
      {"pipeline.replacement_timeout_seconds: nan",
       [](JobSpec* s) { s->pipeline.replacement_timeout_seconds = kNan; }},
      {"checkpoint.every_steps: -1; must be >= 0",
       [](JobSpec* s) { s->checkpoint.every_steps = -1; }},
      {"training.epochs: 3; give steps or epochs, and not both",
       [](JobSpec* s) { s->training.epochs = 3; }},
      {"training.epochs: -1;",
       [](JobSpec* s) {
         s->training.steps = 0;
         s->training.epochs = -1;
       }},
      {"checkpoint.every_epochs: 2; give steps or epochs",
       [](JobSpec* s) {
         s->checkpoint.every_steps = 5;
         s->checkpoint.every_epochs = 2;
       }},
      {"training.until: given; it is an evaluation that ends the job",
       [](JobSpec* s) {
         s->evaluation = {};
         s->training.until.loss = 1;
       }},
      {"training.until.accuracy: 0.5; the objective measures nothing but the loss",
       [](JobSpec* s) { s->training.until.accuracy = 0.5; }},
      {"training.until.mean_iou: 0.5; the objective measures accuracy",
       [](JobSpec* s) {
         s->network.objective = CrossEntropySpec{};
         s->training.until.mean_iou = 0.5;
       }},
      {"checkpoint.keep: 0; must be >= 1", [](JobSpec* s) { s->checkpoint.keep = 0; }},
      {"evaluation.every_steps: -1", [](JobSpec* s) { s->evaluation.every_steps = -1; }},
      {"evaluation.batches: 0; must be >= 1", [](JobSpec* s) { s->evaluation.batches = 0; }},
  });
}

// Of every form that has a final rate.
template <typename Form>
LearningRateSpec Rate() {
  return Form{.peak = 1.0, .warmup_steps = 10, .final = 0.1};
}

TEST(LearningRate, WarmsUpToThePeakUnderEveryForm) {
  for (const LearningRateKind* kind : LearningRateKinds().all()) {
    LearningRateSpec rate;
    rate.kind = kind->name();
    rate.attributes = kind->Defaults();
    if (rate.kind != "noam") rate.attributes.Set("peak", 1.0);
    rate.attributes.Set("warmup_steps", int64_t{10});
    if (rate.kind == "exponential") rate.attributes.Set("every_steps", int64_t{5});
    if (rate.kind == "step") rate.attributes.Set("milestones", std::vector<int64_t>{50});
    if (rate.kind == "noam") rate = NoamRate{.rate = 20, .width = 40, .warmup_steps = 10};
    ASSERT_TRUE(ValidateLearningRate(rate).ok()) << rate.kind;
    ASSERT_TRUE(CheckWarmUp(rate, 110).ok()) << rate.kind;
    EXPECT_DOUBLE_EQ(LearningRateAt(rate, 0, 110), 0.1) << rate.kind;
    EXPECT_DOUBLE_EQ(LearningRateAt(rate, 4, 110), 0.5) << rate.kind;
    EXPECT_DOUBLE_EQ(LearningRateAt(rate, 9, 110), 1.0) << rate.kind;
  }
}

TEST(LearningRate, FollowsItsFormAfterTheWarmUp) {
  EXPECT_EQ(LearningRateAt(ConstantRate{.peak = 1.0, .warmup_steps = 10}, 109, 110), 1.0);
  EXPECT_DOUBLE_EQ(LearningRateAt(Rate<LinearRate>(), 10, 110), 1.0);
  EXPECT_DOUBLE_EQ(LearningRateAt(Rate<LinearRate>(), 60, 110), 0.55);
  EXPECT_DOUBLE_EQ(LearningRateAt(Rate<LinearRate>(), 109, 110), 0.109) << "the last step";
  EXPECT_DOUBLE_EQ(LearningRateAt(Rate<LinearRate>(), 110, 110), 0.1);
  EXPECT_DOUBLE_EQ(LearningRateAt(Rate<CosineRate>(), 10, 110), 1.0);
  EXPECT_DOUBLE_EQ(LearningRateAt(Rate<CosineRate>(), 60, 110), 0.55);
  EXPECT_DOUBLE_EQ(LearningRateAt(Rate<CosineRate>(), 35, 110), 0.1 + 0.45 * (1 + std::sqrt(0.5)));
  EXPECT_DOUBLE_EQ(LearningRateAt(Rate<InverseSquareRootRate>(), 39, 110), 0.5);
  EXPECT_DOUBLE_EQ(LearningRateAt(Rate<InverseSquareRootRate>(), 99'999, 100'000), 0.1)
      << "not below final";
}

TEST(LearningRate, ExponentialCountsFromTheFirstStepAndKeepsItsFloor) {
  ExponentialRate rate{.peak = 1.0, .warmup_steps = 10, .factor = 0.5, .every_steps = 20};
  EXPECT_DOUBLE_EQ(LearningRateAt(rate, 10, 110), std::sqrt(0.5));
  EXPECT_DOUBLE_EQ(LearningRateAt(rate, 20, 110), 0.5);
  EXPECT_DOUBLE_EQ(LearningRateAt(rate, 50, 110), std::pow(0.5, 2.5));
  rate.staircase = true;
  EXPECT_DOUBLE_EQ(LearningRateAt(rate, 10, 110), 1.0);
  EXPECT_DOUBLE_EQ(LearningRateAt(rate, 59, 110), 0.25);
  EXPECT_DOUBLE_EQ(LearningRateAt(rate, 60, 110), 0.125);
  rate.final = 0.2;
  EXPECT_DOUBLE_EQ(LearningRateAt(rate, 60, 110), 0.2);
}

TEST(LearningRate, StepIsMultipliedAtItsMilestones) {
  const StepRate rate{.peak = 1.0, .factor = 0.5, .milestones = {30, 60}};
  EXPECT_EQ(LearningRateAt(rate, 29, 100), 1.0);
  EXPECT_EQ(LearningRateAt(rate, 30, 100), 0.5);
  EXPECT_EQ(LearningRateAt(rate, 60, 100), 0.25);
  const StepRate epochs{.peak = 1.0, .factor = 0.5, .milestone_epochs = {2, 3}};
  EXPECT_EQ(LearningRateAt(epochs, 20, 100, 10.5), 1.0);
  EXPECT_EQ(LearningRateAt(epochs, 21, 100, 10.5), 0.5);
  EXPECT_EQ(LearningRateAt(epochs, 32, 100, 10.5), 0.25) << "3 epochs are 31.5 steps";
}

// AmoebaNet-D's: 0.015, three epochs of warm-up, times 0.97 every 2.4 epochs.
TEST(LearningRate, TellsTheRecipeOfAmoebaNet) {
  const ExponentialRate rate{
      .peak = 0.015, .warmup_epochs = 3, .factor = 0.97, .every_epochs = 2.4, .staircase = true};
  const double epoch = 1281167.0 / 4096;
  const auto at = [&](double epochs) {
    return LearningRateAt(rate, static_cast<int64_t>(epochs * epoch), 100'000, epoch);
  };
  EXPECT_NEAR(at(1.5), 0.0075, 1e-5);
  EXPECT_NEAR(at(3.1), 0.015 * 0.97, 1e-12);
  EXPECT_NEAR(at(4.7), 0.015 * 0.97, 1e-12);
  EXPECT_NEAR(at(4.81), 0.015 * 0.97 * 0.97, 1e-12);
  EXPECT_NEAR(at(100), 0.015 * std::pow(0.97, 41), 1e-12);
}

// Lingvo's recipe for Multi30k: width 256, 1,000 steps of warm-up.
TEST(LearningRate, NoamIsTheTransformersSchedule) {
  const NoamRate rate{.width = 256, .warmup_steps = 1000};
  for (const int64_t step : {0, 1, 499, 998, 999, 1000, 1001, 9999, 999'999}) {
    const auto count = static_cast<double>(step + 1);
    const double paper =
        std::pow(256, -0.5) * std::min(count * std::pow(1000, -1.5), std::pow(count, -0.5));
    EXPECT_NEAR(LearningRateAt(rate, step, 10'000), paper, 1e-14 * paper) << step;
    EXPECT_NEAR(
        LearningRateAt(NoamRate{.rate = 3, .width = 256, .warmup_steps = 1000}, step, 10'000),
        3 * paper, 3e-14 * paper)
        << step;
  }
  // A table of the formula in decimal arithmetic.
  EXPECT_DOUBLE_EQ(LearningRateAt(rate, 0, 10'000), 1.9764235376052371e-6);
  EXPECT_DOUBLE_EQ(LearningRateAt(rate, 999, 10'000), 1.9764235376052371e-3);
  EXPECT_DOUBLE_EQ(LearningRateAt(rate, 3999, 10'000), 0.98821176880261854e-3)
      << "a half at four times";
  EXPECT_DOUBLE_EQ(LearningRateAt(rate, 9999, 10'000), 6.25e-4);
}

TEST(LearningRate, NoamHasAWarmUpAndAWidthOrIsRefused) {
  const auto message = [](const LearningRateSpec& rate) {
    return std::string(ValidateLearningRate(rate).message());
  };
  EXPECT_THAT(message(NoamRate{.width = 256}),
              HasSubstr("training.learning_rate.noam.warmup_steps: 0; must be"));
  EXPECT_THAT(message(NoamRate{.warmup_steps = 9}),
              HasSubstr("training.learning_rate.noam.width: 0; must be"));
  EXPECT_THAT(message(NoamRate{.rate = 0, .width = 1, .warmup_steps = 1}),
              HasSubstr("training.learning_rate.noam.rate: 0; must be"));
  EXPECT_THAT(message(NoamRate{.rate = 1001, .width = 1, .warmup_steps = 1}),
              HasSubstr("training.learning_rate.noam.rate: 1001; must be"));
  LearningRateSpec rate = NoamRate{.width = 256, .warmup_steps = 9};
  EXPECT_EQ(message(rate), "");
  EXPECT_TRUE(CheckWarmUp(rate, 9).ok());
  EXPECT_EQ(CheckWarmUp(rate, 8).message(),
            "training.learning_rate.noam.warmup_steps: 9; must be <= training.steps = 8");
  // Fields of other forms' warm-up would ask for a second one.
  rate.attributes.Set("warmup_epochs", 1.0);
  EXPECT_THAT(message(rate), HasSubstr("training.learning_rate.noam.warmup_epochs is not known"));
  rate = NoamRate{.width = 256, .warmup_steps = 9};
  rate.attributes.Set("peak", 1.0);
  EXPECT_THAT(message(rate), HasSubstr("training.learning_rate.noam.peak is not known"));
}

TEST(LearningRate, WhatRangesDoNotSayIsRefusedWithItsField) {
  const auto message = [](const LearningRateSpec& rate) {
    return std::string(ValidateLearningRate(rate).message());
  };
  EXPECT_THAT(message(ExponentialRate{.peak = 1}),
              testing::HasSubstr("give every_steps or every_epochs"));
  EXPECT_THAT(message(ExponentialRate{.peak = 1, .every_steps = 2, .every_epochs = 1}),
              testing::HasSubstr("not both"));
  EXPECT_THAT(message(StepRate{.peak = 1}),
              testing::HasSubstr("give milestones or milestone_epochs"));
  EXPECT_THAT(message(StepRate{.peak = 1, .milestones = {3, 3}}),
              testing::HasSubstr("step.milestones: 3, 3; must ascend"));
  EXPECT_THAT(message(ConstantRate{.peak = 1, .warmup_steps = 2, .warmup_epochs = 1}),
              testing::HasSubstr("constant.warmup_epochs"));
}

TEST(LearningRate, NeedsNoWarmUp) {
  LearningRateSpec rate = Rate<InverseSquareRootRate>();
  rate.attributes.Set("warmup_steps", int64_t{0});
  EXPECT_EQ(LearningRateAt(rate, 0, 100), 1.0);
  EXPECT_DOUBLE_EQ(LearningRateAt(rate, 3, 100), 0.5);
}

TEST(LearningRate, StaysFiniteWhenAllStepsAreWarmUpOrPassed) {
  const LearningRateSpec rate = Rate<LinearRate>();
  EXPECT_EQ(LearningRateAt(rate, 10, 10), 1.0);
  EXPECT_DOUBLE_EQ(LearningRateAt(rate, 1000, 110), 0.1);
}

TEST(MicroBatchSize, DiffersByAtMostOneAndSumsToTheBatch) {
  for (int64_t n = 1; n <= 40; ++n) {
    for (int64_t m = 1; m <= n; ++m) {
      int64_t sum = 0, previous = n;
      for (int64_t i = 0; i < m; ++i) {
        const int64_t size = MicroBatchSize(n, m, i);
        EXPECT_LE(size, previous) << "the larger ones come first";
        EXPECT_GE(size, 1);
        sum += previous = size;
      }
      EXPECT_EQ(sum, n);
      EXPECT_LE(MicroBatchSize(n, m, 0) - MicroBatchSize(n, m, m - 1), 1);
    }
  }
}

// Of one value a channel, statistics say nothing: what came out would be the bias.
TEST(ValidateJobSpec, RefusesMicroBatchesWithoutStatisticsForABatchNorm) {
  JobSpec spec = GoodSpec();
  const auto with_context = [](int64_t context) {
    return SequenceSpec{.width = 8,
                        .context = context,
                        .vocabulary = 9,
                        .layers = {EmbeddingSpec{}, BatchNormSpec{}, LinearSpec{.out = 9}}};
  };
  spec.training.batch_size = 5;
  spec.training.micro_batches = 3;  // of 2, 2 and 1
  spec.network = with_context(2);
  EXPECT_TRUE(ValidateJobSpec(spec).ok()) << "two places a sample";
  spec.network = with_context(1);
  EXPECT_EQ(ValidateJobSpec(spec).message(),
            "training.micro_batches: 3; layer 1 (batch_norm) takes statistics of 2 samples of a "
            "micro-batch or more, and the smallest micro-batch would have 1: use at most 2");
  spec.training.micro_batches = 2;
  EXPECT_TRUE(ValidateJobSpec(spec).ok());
}

// The last norm of the head has one place of each image.
TEST(ValidateJobSpec, RefusesAMicroBatchOfOneImageWithAnAuxiliaryHead) {
  AmoebanetDSpec amoebanet;
  amoebanet.image = {8, 8, 1};
  amoebanet.classes = 10;
  amoebanet.layers = 3;
  amoebanet.filters = 4;
  amoebanet.stem = AmoebanetStem::kSmall;
  JobSpec spec = GoodSpec();
  spec.data = IdxData{.images = "images", .labels = "labels"};
  spec.training.batch_size = 8;
  spec.training.micro_batches = 8;
  spec.network = amoebanet;
  EXPECT_TRUE(ValidateJobSpec(spec).ok()) << ValidateJobSpec(spec);
  amoebanet.auxiliary_weight = 0.4;
  spec.network = amoebanet;
  EXPECT_EQ(ValidateJobSpec(spec).message(),
            "training.micro_batches: 8; layer 3 (normal_cell(auxiliary_head)) takes statistics of "
            "2 samples of a micro-batch or more, and the smallest micro-batch would have 1: use at "
            "most 4");
  spec.training.micro_batches = 4;
  EXPECT_TRUE(ValidateJobSpec(spec).ok());
}

TEST(ValidateJobSpec, RefusesToFreezeWhatIsNotThereOrEverything) {
  const std::string known =
      "there are model/0000/token.weight, model/0001/layer_norm.weight, "
      "model/0002/layer_norm.weight and others";
  JobSpec spec = GoodSpec();
  spec.training.freeze = {"*.bias", "model/0099/*"};
  EXPECT_EQ(
      ValidateJobSpec(spec).message(),
      "training.freeze[1]: \"model/0099/*\"; must match a parameter's name, * standing for any "
      "characters: " +
          known);
  spec.training.freeze = {"*.weight", "*"};
  EXPECT_EQ(
      ValidateJobSpec(spec).message(),
      "training.freeze: 2 patterns; must leave a parameter to train: together they match all");
  spec.training.freeze = {"model/0000/*", "*.bias"};
  EXPECT_TRUE(ValidateJobSpec(spec).ok());
  EXPECT_FALSE(ExpandJob(spec)->layers[0].parameters[0].trained);
}

TEST(ValidateJobSpec, AdaptersNeedTheirWeightsAndNothingElseThatIsFrozen) {
  JobSpec good = GoodSpec();
  good.initialize.from = "/weights";
  good.training.lora = {.rank = 2, .alpha = 4, .targets = {"qkv"}};
  EXPECT_TRUE(ValidateJobSpec(good).ok()) << ValidateJobSpec(good);
  good.resume.job = "first";
  EXPECT_TRUE(ValidateJobSpec(good).ok()) << "a base is in no checkpoint";
  const auto refusal = [&good](const std::function<void(JobSpec*)>& change) {
    JobSpec spec = good;
    change(&spec);
    return std::string(ValidateJobSpec(spec).message());
  };
  EXPECT_EQ(refusal([](JobSpec* spec) {
              spec->initialize.except = {"of_the_file_alone", "*token.weight"};
            }),
            "initialize.except[1]: \"*token.weight\"; matches model/0000/token.weight, which would "
            "stay random: with training.lora only adapters are trained");
  EXPECT_EQ(refusal([](JobSpec* spec) { spec->initialize = {}; }),
            "training.lora: given; adapters need the weights that they adapt: set initialize.from");
  EXPECT_EQ(refusal([](JobSpec* spec) { spec->training.lora.rank = 0; }),
            "training.lora.rank: 0; give a rank as well: 8, say");
  EXPECT_EQ(refusal([](JobSpec* spec) { spec->training.lora.rank = -1; }),
            "training.lora.rank: -1; must be >= 0");
  EXPECT_EQ(refusal([](JobSpec* spec) { spec->training.freeze = {"*.lora_a.weight"}; }),
            "training.freeze: 1 patterns; with training.lora all but the adapters is frozen: leave "
            "it out");
  EXPECT_EQ(refusal([](JobSpec* spec) { spec->training.lora.alpha = -4; }),
            "training.lora.alpha: -4; divided by the rank 2 it must be in [1e-06, 1e+06]");
  EXPECT_EQ(refusal([](JobSpec* spec) { spec->training.lora.dropout = 1.5; }),
            "training.lora.dropout: 1.5; must be a number in [0, 1)");
}

TEST(Names, AreThoseOfTheYaml) {
  EXPECT_STREQ(RematerializationName(Rematerialization::kAlways), "always");
  EXPECT_STREQ(RematerializationName(Rematerialization::kExceptFirst), "except_first");
  EXPECT_STREQ(RematerializationName(Rematerialization::kNever), "never");
}

}  // namespace
}  // namespace stagecoach
