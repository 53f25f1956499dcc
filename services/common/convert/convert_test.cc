// Conversions are their own inverse; a field that somebody forgot makes these tests fail.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/status_is.h"
#include "plan/learning_rates/step.h"
#include "plan/optimizers/rmsprop.h"
#include "plan/schedules/schedule_kinds.h"
#include "services/common/convert/convert_control.h"
#include "services/common/convert/convert_plan.h"
#include "services/common/convert/fields/enum_name.h"
#include "services/common/convert/network/convert_network.h"
#include "services/common/convert/spec/convert_spec.h"
#include "services/common/convert/spec/job_spec_testing.h"

namespace stagecoach {
namespace {

using ::testing::HasSubstr;

TEST(ConvertSpec, ComesBackEqual) {
  for (const JobSpec& spec : {JobSpec(GptJob()), LayerJob()}) {
    const absl::StatusOr<JobSpec> back = FromProto(ToProto(spec));
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(*back, spec);
  }
}

TEST(ConvertSpec, EpochsTargetsAveragesAndInitialWeightsComeBack) {
  JobSpec spec = GptJob();
  spec.training.steps = 0;
  spec.training.epochs = 2.5;
  spec.training.until = {.loss = 1.5, .accuracy = 0.5, .top_5 = 0.75, .mean_iou = 0.25};
  spec.training.average = {.decay = 0.999, .warmup = true};
  spec.checkpoint = {.keep = 2, .every_epochs = 5};
  spec.evaluation = {.batches = 2, .every_epochs = 0.5};
  spec.training.optimizer = RmsPropSpec{.form = RmsPropSpec::Form::kPyTorch};
  spec.training.learning_rate =
      StepRate{.peak = 0.1, .warmup_epochs = 1.5, .milestone_epochs = {30, 60.5}};
  spec.initialize = {
      .from = "/a/model.safetensors", .names = "timm", .except = {"head.*", "model/0004/*"}};
  const absl::StatusOr<JobSpec> back = FromProto(ToProto(spec));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(*back, spec);
}

TEST(ConvertControl, ADeathComesBackAndLongTextsAreRefused) {
  const StageDeath death = {"SIGSEGV",
                            {.job = "a", .term = 3, .generation = 2, .step = 12},
                            MicroBatchId(3),
                            "backward",
                            "linear"};
  EXPECT_EQ(FromProto(ToProto(death)).value(), death);
  StageDeath load = death;
  load.micro_batch = MicroBatchId();
  EXPECT_EQ(FromProto(ToProto(load)).value(), load);
  load.instruction = std::string(64, 'x');
  EXPECT_THAT(FromProto(ToProto(load)).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("last_death.instruction has 64 characters; give at most 63")));
}

TEST(ConvertSpec, EveryScheduleComesBack) {
  for (const std::string& schedule : ScheduleNames()) {
    JobSpec spec = GptJob();
    spec.pipeline.schedule = schedule;
    EXPECT_EQ(*FromProto(ToProto(spec)), spec);
  }
  // And each value of the enum is one.
  for (int i = 1; i < v1::ScheduleKind_descriptor()->value_count(); ++i) {
    const std::string name = ShortEnumName(*v1::ScheduleKind_descriptor()->value(i));
    EXPECT_TRUE(ScheduleKinds().Find(name).ok()) << name;
  }
}

TEST(ConvertSpec, WhatIsLeftOutGetsTheDomainsDefaults) {
  v1::JobSpec proto;
  proto.mutable_model()->mutable_gpt()->set_layers(1);
  proto.mutable_data()->mutable_text()->set_path("a");
  proto.mutable_training()->mutable_learning_rate()->mutable_constant()->set_peak(0.1);
  const absl::StatusOr<JobSpec> spec = FromProto(proto);
  ASSERT_TRUE(spec.ok()) << spec.status();
  const JobSpec defaults;
  EXPECT_EQ(spec->training.optimizer, defaults.training.optimizer);
  EXPECT_EQ(spec->training.max_nonfinite_steps, defaults.training.max_nonfinite_steps);
  EXPECT_TRUE(spec->training.freeze.empty());
  EXPECT_EQ(spec->pipeline, defaults.pipeline);
  EXPECT_EQ(spec->checkpoint, defaults.checkpoint);
  EXPECT_EQ(spec->resume.step, -1);
  EXPECT_EQ(spec->initialize, defaults.initialize);
  proto.mutable_initialize()->set_from("/a");
  EXPECT_EQ(FromProto(proto)->initialize, InitializeSpec{.from = "/a"});
  EXPECT_EQ(spec->precision, Precision::kFloat32);
}

// Seen: an `else` that meant "the other one" turned whatever a newer client asked for into AdamW.
TEST(ConvertSpec, AnOptimizerThatThisVersionDoesNotKnowIsRefused) {
  v1::JobSpec proto = ToProto(GptJob());
  v1::Optimizer& optimizer = *proto.mutable_training()->mutable_optimizer();
  optimizer.clear_kind();
  EXPECT_TRUE(FromProto(proto).ok()) << "none: the default";
  constexpr int kNewerKind = 77;
  optimizer.GetReflection()->MutableUnknownFields(&optimizer)->AddLengthDelimited(kNewerKind);
  EXPECT_THAT(FromProto(proto).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("training.optimizer")));
}

struct Broken {
  const char* says;
  void (*spoil)(v1::JobSpec&);
};

TEST(ConvertSpec, NamesTheFieldThatCannotBeRead) {
  const Broken rows[] = {
      {"model: not set", [](v1::JobSpec& p) { p.clear_model(); }},
      {"data: not set", [](v1::JobSpec& p) { p.clear_data(); }},
      {"training.learning_rate: not set",
       [](v1::JobSpec& p) { p.mutable_training()->clear_learning_rate(); }},
      {"pipeline.schedule=1000",
       [](v1::JobSpec& p) {
         p.mutable_pipeline()->set_schedule(static_cast<v1::ScheduleKind>(1000));
       }},
      {"pipeline.rematerialization=9",
       [](v1::JobSpec& p) {
         p.mutable_pipeline()->set_rematerialization(static_cast<v1::Rematerialization>(9));
       }},
      {"pipeline.partition.rule=9",
       [](v1::JobSpec& p) {
         v1::Partition& partition = *p.mutable_pipeline()->mutable_partition();
         partition.Clear();
         partition.set_rule(static_cast<v1::PartitionRule>(9));
       }},
      {"pipeline.partition: has both",
       [](v1::JobSpec& p) {
         p.mutable_pipeline()->mutable_partition()->set_rule(v1::PARTITION_RULE_AUTO);
       }},
      {"precision=9", [](v1::JobSpec& p) { p.set_precision(static_cast<v1::Precision>(9)); }},
      {"resume.job: not set", [](v1::JobSpec& p) { p.mutable_resume()->clear_job(); }},
      {"resume.step=-4", [](v1::JobSpec& p) { p.mutable_resume()->set_step(-4); }},
      {"initialize.from: not set", [](v1::JobSpec& p) { p.mutable_initialize(); }},
      {"model.sequence.layers[0].residual.layers[0]: not set",
       [](v1::JobSpec& p) {
         p.mutable_model()->mutable_sequence()->add_layers()->mutable_residual()->add_layers();
       }},
  };
  for (const Broken& row : rows) {
    v1::JobSpec proto = ToProto(GptJob());
    row.spoil(proto);
    const absl::Status status = FromProto(proto).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << row.says;
    EXPECT_THAT(std::string(status.message()), HasSubstr(row.says));
  }
}

TEST(ConvertSpec, RefusesResidualsNestedWithoutEnd) {
  v1::JobSpec proto = ToProto(GptJob());
  v1::Layer* layer = proto.mutable_model()->mutable_sequence()->add_layers();
  for (int i = 0; i < 90; ++i) layer = layer->mutable_residual()->add_layers();
  layer->mutable_gelu();
  EXPECT_THAT(std::string(FromProto(proto).status().message()), HasSubstr("nested deeper than"));
}

std::shared_ptr<const Network> NetworkOfGptJob() {
  auto network = ExpandJob(GptJob());
  EXPECT_TRUE(network.ok()) << network.status();
  return std::make_shared<const Network>(*std::move(network));
}

TEST(ConvertPlan, ASchedulesTextIsLeftOutWhereItIsTooLong) {
  Plan plan;
  plan.schedule = MakeSchedule({.kind = "gpipe", .stages = 2, .micro_batches = 3});
  const std::string whole = ToProto(plan).schedule();
  EXPECT_FALSE(whole.empty());
  EXPECT_EQ(ToProto(plan, whole.size()).schedule(), whole);
  EXPECT_EQ(ToProto(plan, whole.size() - 1).schedule(), "");
}

TEST(ConvertControl, LoadComesBackEqual) {
  LoadCommand command;
  command.fence = {"job-a", 1, 2, 3, 4};
  command.spec = GptJob();
  command.network = NetworkOfGptJob();
  command.partition.first_layers = {0, 3, 5};
  command.stage = StageId(1);
  command.neighbours = {{.downstream_address = "127.0.0.1:1", .upstream_name = "stage-3"}};
  command.checkpoint_folder = "/c/step-000000000003";
  command.expected_data = {100, "abc", 5, 6};
  command.probe_folder = "/c/.tmp-1-0-x";
  const absl::StatusOr<LoadCommand> back = FromProto(ToProto(command));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->fence, command.fence);
  EXPECT_EQ(back->spec, command.spec);
  EXPECT_EQ(ToProto(*back->network).sha256(), ToProto(*command.network).sha256());
  EXPECT_EQ(back->partition, command.partition);
  EXPECT_EQ(back->stage, command.stage);
  EXPECT_EQ(back->neighbours, command.neighbours);
  EXPECT_EQ(back->checkpoint_folder, command.checkpoint_folder);
  EXPECT_EQ(back->expected_data, command.expected_data);
  EXPECT_EQ(back->probe_folder, command.probe_folder);
}

TEST(ConvertControl, WhatKeepsAStageFromTheFolderComesBackEqual) {
  LoadResult result;
  EXPECT_TRUE(FromProto(ToProto(result)).folder.ok());
  result.folder = absl::NotFoundError("open /c/probe: no such file");
  EXPECT_EQ(FromProto(ToProto(result)).folder, result.folder);
  result.weights = {200, "def", 2, "abc", {{"a", "F32", "[3]", "123"}, {"b", "BF16", "[]", "4"}}};
  EXPECT_EQ(FromProto(ToProto(result)).weights, result.weights);
}

TEST(ConvertControl, WhatTheDataToldComesBackEqual) {
  LoadResult result;
  EXPECT_FALSE(ToProto(result).has_facts());
  result.facts = {.classes = {"ape", "bee"}, .mean = {0.1, 0.2, 0.3}, .deviation = {1, 2, 3}};
  EXPECT_EQ(FromProto(ToProto(result)).facts, result.facts);
  result.data_notes = {"3 .bmp", "2 bad records"};
  EXPECT_EQ(FromProto(ToProto(result)).data_notes, result.data_notes);
  EXPECT_EQ(FromProto(ToProto(result)).shown, nullptr);
  result.shown = std::make_shared<const std::vector<std::string>>(2, std::string("\xff\0", 2));
  EXPECT_EQ(*FromProto(ToProto(result)).shown, *result.shown);
}

TEST(ConvertControl, RefusesAPartitionThatIsNone) {
  LoadCommand command;
  command.spec = GptJob();
  command.network = NetworkOfGptJob();
  command.stage = StageId(0);
  const std::vector<std::vector<int>> partitions = {{}, {1}, {0, 0}, {0, 3, 2}};
  for (const std::vector<int>& layers : partitions) {
    command.partition.first_layers = layers;
    EXPECT_EQ(FromProto(ToProto(command)).status().code(), absl::StatusCode::kInvalidArgument);
  }
  command.partition.first_layers = {0, 2};
  command.stage = StageId(2);
  EXPECT_THAT(std::string(FromProto(ToProto(command)).status().message()), HasSubstr("stage=2"));
}

TEST(ConvertControl, RunAndItsReportComeBackEqual) {
  RunCommand command;
  command.fence = {"job-a", 1, 2, 3, 4};
  command.apply = ApplyDecision{.step = 2,
                                .apply = false,
                                .optimizer_steps = 1,
                                .learning_rate = 0.125,
                                .gradient_scale = 0.5};
  command.work = WorkKind::kEvaluate;
  command.evaluation_batch = 9;
  command.average = true;
  const absl::StatusOr<RunCommand> back = FromProto(ToProto(command));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->fence, command.fence);
  EXPECT_EQ(back->apply, command.apply);
  EXPECT_EQ(back->work, command.work);
  EXPECT_EQ(back->evaluation_batch, 9u);
  EXPECT_TRUE(back->average);
  command.apply.reset();
  EXPECT_FALSE(FromProto(ToProto(command))->apply.has_value());

  StepReport report;
  report.fence = command.fence;
  report.has_loss = true;
  report.loss_sum = 0;  // a sum of zero is still a loss
  report.targets = 128;
  report.terms = 120;
  report.padding = {.positions = 512, .padded = 37};
  report.measures = {{"accuracy", 97}};
  report.class_counts = {{1, 2, 3}, {}, {90, 100, 110}};
  report.layer_squared_norms = {0.1, 1e-300, 3};
  report.finite = false;
  report.step_seconds = 0.25;
  report.phases[Phase::kBubble] = 0.125;
  report.memory_peak = {1, 2, 3, 4};
  const StepReport read = FromProto(ToProto(report));
  EXPECT_TRUE(read.has_loss);
  EXPECT_EQ(read.targets, 128);
  EXPECT_EQ(read.terms, 120);
  EXPECT_EQ(read.padding, report.padding);
  EXPECT_EQ(read.measures, report.measures);
  EXPECT_EQ(read.class_counts, report.class_counts);
  v1::RunResponse older = ToProto(report);
  older.clear_terms();
  older.clear_positions();
  older.clear_padded();
  EXPECT_EQ(FromProto(older).terms, 128) << "what a stage without it meant";
  EXPECT_EQ(FromProto(older).padding, PaddingCount());
  EXPECT_EQ(read.layer_squared_norms, report.layer_squared_norms);
  EXPECT_FALSE(read.finite);
  EXPECT_EQ(read.phases.seconds, report.phases.seconds);
  EXPECT_EQ(read.memory_peak.total(), 10);
}

TEST(ConvertControl, ShardsComeBackEqualAndSpoiledOnesAreRefused) {
  ShardInfo shard{"layer-0000-0002.safetensors", 100, "f00", {}};
  shard.tensors.push_back({{"model/0000/token.weight", DType::kF32, {4, 2}, 0, 32}, "beef"});
  const absl::StatusOr<ShardInfo> back = FromProto(ToProto(shard));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(*back, shard);
  v1::WriteShardResponse proto = ToProto(shard);
  proto.mutable_tensors(0)->set_shape(0, -1);
  EXPECT_FALSE(FromProto(proto).ok());
  proto = ToProto(shard);
  proto.mutable_tensors(0)->set_dtype("F99");
  EXPECT_FALSE(FromProto(proto).ok());
}

}  // namespace
}  // namespace stagecoach
