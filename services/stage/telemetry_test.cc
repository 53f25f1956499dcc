#include "services/stage/telemetry.h"

#include <gtest/gtest.h>

namespace stagecoach {
namespace {

TEST(Quantile, InterpolatesInsideTheBucket) {
  Histogram histogram({1, 2, 4});
  EXPECT_EQ(Quantile(histogram.snapshot(), 0.95), 0) << "nothing was observed";
  for (int i = 0; i < 100; ++i) histogram.Observe(1.5);
  EXPECT_NEAR(Quantile(histogram.snapshot(), 0.95), 1.95, 1e-9);
  for (int i = 0; i < 100; ++i) histogram.Observe(0.5);
  EXPECT_NEAR(Quantile(histogram.snapshot(), 0.5), 1.0, 1e-9);
  EXPECT_NEAR(Quantile(histogram.snapshot(), 0.75), 1.5, 1e-9);
}

TEST(Quantile, EndsAtTheLargestBound) {
  Histogram histogram({1, 2});
  histogram.Observe(100);
  EXPECT_EQ(Quantile(histogram.snapshot(), 0.95), 2);
}

TEST(Telemetry, LinksTellTheTotalsOfTheProcess) {
  LinkTotals totals;
  totals.sent_bytes = 7;
  totals.received_bytes = 8;
  totals.reconnects = 2;
  Histogram transfer({0.1, 0.2});
  transfer.Observe(0.15);
  LinkStatistics link;
  link.sent_bytes = 1;  // of the link at hand only
  link.inflight_messages = 2;
  const v1::LinkTelemetry proto = ToProto(NeighbourLink{"upstream", &totals, &transfer}, link);
  EXPECT_EQ(proto.peer(), "upstream");
  EXPECT_EQ(proto.sent_bytes(), 7);
  EXPECT_EQ(proto.received_bytes(), 8);
  EXPECT_EQ(proto.reconnects(), 2);
  EXPECT_EQ(proto.inflight_messages(), 2);
  EXPECT_NEAR(proto.transfer_p95_seconds(), 0.195, 1e-9);
}

TEST(Telemetry, StageTellsPhasesAndMemory) {
  StageStatus status;
  status.phases[Phase::kBubble] = 2.5;
  status.memory.current[static_cast<int>(MemoryKind::kParameters)] = 10;
  status.memory.peak[static_cast<int>(MemoryKind::kActivations)] = 20;
  status.memory.limit = 99;
  const v1::StageTelemetry telemetry = ToProto(status);
  EXPECT_EQ(telemetry.phases().seconds().at("bubble"), 2.5);
  EXPECT_EQ(telemetry.memory().parameters(), 10);
  EXPECT_EQ(telemetry.memory_peak().activations(), 20);
  EXPECT_EQ(telemetry.memory_limit_bytes(), 99);
}

// Seen: a step's report counted workspaces as activations, the heartbeat of the same stage left
// them out, and the page showed two peaks of one step.
TEST(Telemetry, MemoryIsCountedAsTheReportOfAStepCountsIt) {
  StageStatus status;
  status.memory.current[static_cast<int>(MemoryKind::kWorkspace)] = 3;
  status.memory.peak[static_cast<int>(MemoryKind::kActivations)] = 20;
  status.memory.peak[static_cast<int>(MemoryKind::kWorkspace)] = 5;
  const v1::StageTelemetry telemetry = ToProto(status);
  EXPECT_EQ(telemetry.memory().activations(), 3);
  EXPECT_EQ(telemetry.memory_peak().activations(), 25);
}

TEST(Telemetry, SpansKeepTheirFields) {
  TraceSpan span{.step = 4, .begin_unix_nanos = 10, .end_unix_nanos = 30, .attempt = 1};
  span.micro_batch = MicroBatchId(2);
  span.phase = Phase::kRecompute;
  v1::TraceSpan proto = ToProto(span);
  EXPECT_EQ(proto.name(), "recompute");
  EXPECT_EQ(proto.track(), v1::TRACE_TRACK_COMPUTE);
  EXPECT_EQ(proto.step(), 4u);
  EXPECT_EQ(proto.attempt(), 1u);
  EXPECT_EQ(proto.micro_batch(), 2);
  EXPECT_EQ(proto.begin_unix_nanos(), 10);
  EXPECT_EQ(proto.end_unix_nanos(), 30);
  EXPECT_EQ(proto.peer(), "");
  span.track = TraceTrack::kSend;
  span.kind = MessageKind::kGradient;
  span.upstream = true;
  span.bytes = 512;
  proto = ToProto(span);
  EXPECT_EQ(proto.name(), "gradient");
  EXPECT_EQ(proto.track(), v1::TRACE_TRACK_SEND);
  EXPECT_EQ(proto.peer(), "upstream");
  EXPECT_EQ(proto.bytes(), 512);
}

}  // namespace
}  // namespace stagecoach
