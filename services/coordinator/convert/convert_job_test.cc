// Conversions are their own inverse; a field that somebody forgot makes these tests fail.
#include "services/coordinator/convert/convert_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "services/common/convert/convert_control.h"
#include "services/common/convert/spec/job_spec_testing.h"
#include "services/coordinator/convert/job_codec.h"

namespace stagecoach {
namespace {

TEST(ProtoJobCodec, DecodesWhatItEncodedAndRefusesTheRest) {
  const ProtoJobCodec codec;
  JobSpec writing = GptJob();
  writing.write = WriteSpec{.lines = {"", "ein \"Haus\"\n"},
                            .tag = "<2de>",
                            .translate = TranslateSpec{},
                            .generate = GenerateSpec{.temperature = 0, .stops = {"."}}};
  for (const JobSpec& spec : {JobSpec(GptJob()), LayerJob(), writing}) {
    EXPECT_EQ(codec.Encode(spec), codec.Encode(spec));
    const absl::StatusOr<JobSpec> back = codec.Decode(codec.Encode(spec));
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(*back, spec);
  }
  EXPECT_EQ(codec.Decode("{").status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(codec.Decode("{\"widht\": 3}").status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(codec.Decode("{}").status().code(), absl::StatusCode::kDataLoss);
}

TEST(ConvertJob, ShowsInnerStatesAsTheFiveThatUsersKnow) {
  EXPECT_EQ(JobStateOf(JobPhase::kLoading), v1::JOB_STATE_PENDING);
  EXPECT_EQ(JobStateOf(JobPhase::kRecovering), v1::JOB_STATE_RUNNING);
  EXPECT_EQ(JobStateOf(JobPhase::kFinishing), v1::JOB_STATE_RUNNING);
  EXPECT_EQ(JobStateOf(JobPhase::kCancelled), v1::JOB_STATE_CANCELLED);
  JobView view;
  view.id = "job-a";
  view.spec = std::make_shared<const JobSpec>(GptJob());
  view.phase = JobPhase::kRecovering;
  view.stages.push_back({"stage-0", "127.0.0.1:1", {{0, 3}}, {}, {}});
  const v1::Job job = ToProto(view);
  EXPECT_EQ(job.detail(), "recovering");
  EXPECT_FALSE(job.has_loss());
  EXPECT_FALSE(job.has_last_checkpoint_step());
  EXPECT_FALSE(job.has_finished_unix_seconds());
  EXPECT_EQ(job.stages(0).last_layer(), 3);
  view.set_aside = true;
  EXPECT_EQ(ToProto(view).detail(), "set aside");
}

// One entry of the journal that could not be read, and the coordinator ended whenever somebody
// listed its jobs.
TEST(ConvertJob, AJobThatIsSetAsideHasNoMoreThanItsName) {
  JobView view;
  view.id = view.summary.name = "a";
  view.phase = JobPhase::kFailed;
  view.message = "DATA_LOSS: ";
  view.set_aside = true;
  const v1::Job job = ToProto(view);
  EXPECT_EQ(job.spec().name(), "a");
  EXPECT_FALSE(job.spec().has_model());
  EXPECT_EQ(job.state(), v1::JOB_STATE_FAILED);
  EXPECT_EQ(job.message(), "DATA_LOSS: ");
}

TEST(ConvertJob, AForecastSaysWhereItComesFrom) {
  JobView view;
  view.spec = std::make_shared<const JobSpec>(GptJob());
  view.forecast_flops_per_second = kAssumedFlopsPerSecond;
  EXPECT_EQ(ToProto(view).forecast_rate_source(), v1::RATE_SOURCE_UNSPECIFIED) << "no plan yet";
  view.forecast_step_seconds = 0.2;
  EXPECT_EQ(ToProto(view).forecast_rate_source(), v1::RATE_SOURCE_ASSUMED);
  EXPECT_EQ(ToProto(view).forecast_flops_per_second(), kAssumedFlopsPerSecond);
  view.forecast_rate_source = RateSource::kProfile;
  EXPECT_EQ(ToProto(view).forecast_rate_source(), v1::RATE_SOURCE_PROFILE);
}

TEST(ConvertJob, EveryKindOfRecordHasItsMessage) {
  JobRecord record;
  record.number = 7;
  record.step = 3;
  record.loss = 1.5;
  record.message = "why";
  using Kind = JobRecord::Kind;
  using Case = v1::WatchJobResponse::KindCase;
  const std::pair<Kind, Case> rows[] = {
      {Kind::kState, Case::kState},           {Kind::kStep, Case::kStepDone},
      {Kind::kEvaluation, Case::kEvaluation}, {Kind::kCheckpoint, Case::kCheckpoint},
      {Kind::kRecovery, Case::kRecovery},     {Kind::kFinished, Case::kFinished},
      {Kind::kWritten, Case::kWritten}};
  for (const auto& [kind, kind_case] : rows) {
    record.kind = kind;
    const v1::WatchJobResponse proto = ToProto(record);
    EXPECT_EQ(proto.kind_case(), kind_case);
    EXPECT_EQ(proto.number(), 7u);
  }
}

TEST(ConvertJob, TextsKeepTheirBytesAndTheirOrder) {
  JobRecord record;
  record.kind = JobRecord::Kind::kWritten;
  record.written = {{.line = 1, .offset = 4, .text = "\xff\n"},
                    {.line = 0, .done = true, .tokens = 9, .score = -1.5, .ended = true}};
  const v1::WatchJobResponse proto = ToProto(record);
  ASSERT_EQ(proto.written().texts_size(), 2);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(FromProto(proto.written().texts(i)), record.written[static_cast<size_t>(i)]);
  }
  EXPECT_EQ(proto.written().texts(0).text(), "\xff\n");
}

// Lists of stages showed to everybody by what the name of a living stage can be taken.
TEST(ConvertJob, TheIdentityOfAStageIsShownToNobody) {
  const StageRegistration in{"stage-0", "cafe", "127.0.0.1:1", "cuda:0", "0.1.0", "fp", 99, "id"};
  EXPECT_EQ(ToProto(in).identity(), "");
}

TEST(ConvertJob, RegistrationComesBackEqual) {
  StageRegistration in{"stage-0", "cafe", "127.0.0.1:1", "cuda:0", "0.1.0", "fp", 99};
  EXPECT_EQ(FromProto(ToProto(in)), in);
  in.card = CardProfile{};
  EXPECT_EQ(FromProto(ToProto(in)), in) << "a card without attention of its own is a card";
  in.card->attention = AttentionKernels{.name = "fused",
                                        .precisions = {Precision::kFloat32, Precision::kBfloat16},
                                        .tile = 128,
                                        .widest_head = 256,
                                        .head_multiple = 8,
                                        .score_bytes = 7};
  EXPECT_EQ(FromProto(ToProto(in)), in);
  in.without_kernels = {"gelu", "linear"};
  EXPECT_EQ(FromProto(ToProto(in)), in);
}

// No plan asks for the others, and a registration must not fill the memory.
TEST(ConvertJob, OfOperationsWithoutAKernelThoseOfTheCatalogueAreKeptOnce) {
  v1::Stage proto;
  for (const char* operation : {"linear", "levitate", "gelu", "linear"}) {
    proto.add_without_kernels(operation);
  }
  EXPECT_EQ(FromProto(proto).without_kernels, (std::vector<std::string>{"gelu", "linear"}));
}

// Whatever a process says of its card, a plan must not divide by zero.
TEST(ConvertJob, ACardThatTellsNothingOfItsTilesHasNone) {
  v1::Stage proto;
  proto.mutable_card()->mutable_attention()->set_name("fused");
  const std::optional<CardProfile> card = FromProto(proto).card;
  EXPECT_EQ(card->attention->tile, 1);
  EXPECT_EQ(card->attention->head_multiple, 1);
}

TEST(ConvertJob, TotalsComeBackEqualAndBounded) {
  v1::StageTelemetry proto;
  (*proto.mutable_phases()->mutable_seconds())["forward"] = 1.5;
  proto.mutable_memory()->set_gradients(3);
  proto.mutable_memory_peak()->set_activations(4);
  proto.set_memory_limit_bytes(5);
  proto.set_uptime_seconds(6);
  for (const char* peer : {"upstream", "downstream"}) {
    v1::LinkTelemetry& link = *proto.add_links();
    link.set_peer(peer);
    link.set_sent_bytes(7);
    link.set_received_bytes(8);
    link.set_inflight_messages(9);
    link.set_reconnects(10);
    link.set_transfer_p95_seconds(0.25);
  }
  const v1::StageTelemetry once = ToProto(FromProto(proto));
  EXPECT_EQ(once.phases().seconds().at("forward"), 1.5);
  EXPECT_EQ(once.memory().SerializeAsString(), proto.memory().SerializeAsString());
  EXPECT_EQ(once.memory_peak().SerializeAsString(), proto.memory_peak().SerializeAsString());
  EXPECT_EQ(once.memory_limit_bytes(), 5);
  EXPECT_EQ(once.uptime_seconds(), 6);
  ASSERT_EQ(once.links_size(), 2);
  EXPECT_EQ(once.links(1).SerializeAsString(), proto.links(1).SerializeAsString());
  proto.add_links()->set_peer("a third one");
  EXPECT_EQ(ToProto(FromProto(proto)).links_size(), 2);
}

}  // namespace
}  // namespace stagecoach
