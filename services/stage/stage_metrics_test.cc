#include "services/stage/stage_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "services/common/grpc/rpc_metrics.h"
#include "services/common/http2/read_watch.h"
#include "services/common/listener/grpc_listener.h"
#include "services/common/listener/listen_sockets.h"
#include "services/common/tls/tls_expiry.h"

namespace stagecoach {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class StageMetricsTest : public ::testing::Test {
 protected:
  void Write(MetricWriter& writer) {
    WriteProcessMetrics("cpu", writer);
    rpcs_.Write(writer);
    WriteStageMetrics("s0", status_, writer);
    WriteDeviceMetrics("s0", device_, writer);
    WriteDataMetrics("s0", 1, 2, writer);
    micro_batches_.Write("s0", writer);
    WriteLinkMetrics("s0", {"upstream", &upstream_, &transfer_}, status_.upstream, writer);
    WriteLinkMetrics("s0", {"downstream", &downstream_, &transfer_}, status_.downstream, writer);
  }

  RpcMetrics rpcs_{{"stagecoach.v1.StageService"}};
  StageStatus status_;
  DeviceReading device_ = {.utilization = 0.5,
                           .power_watts = 700,
                           .temperature_celsius = 60,
                           .memory_used_bytes = 1 << 20,
                           .memory_size_bytes = 1 << 30};
  MicroBatchTimes micro_batches_;
  LinkTotals upstream_, downstream_;
  Histogram transfer_{Histogram::DoublingBounds()};
};

TEST_F(StageMetricsTest, AnIdleStageExportsEveryNameOfItsList) {
  std::set<std::string> listed;
  for (const MetricDefinition* metric : AllMetrics()) {
    if (absl::StrContains(metric->by, "S")) listed.insert(metric->name);
  }
  rpcs_.Refused("stagecoach.v1.StageService", "LoadCell", "user");  // with TLS; none is no series
  MetricWriter writer;
  Write(writer);
  WriteTlsMetrics(TlsExpiry{1.0, 2.0}, writer);
  GrpcListener(ListenSockets::Open("127.0.0.1:0", 1000).value(), {}).Write(writer);
  WriteReadFaults(writer);
  const std::vector<std::string> names = writer.Names();
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()), listed);
}

TEST_F(StageMetricsTest, SaysHowManyRecordsTheDataIsWithout) {
  status_.bad_records = 3;
  MetricWriter writer;
  Write(writer);
  EXPECT_THAT(writer.Text(), HasSubstr("stagecoach_stage_data_bad_records{stage=\"s0\"} 3"));
}

TEST_F(StageMetricsTest, LeavesOutWhatIsNotKnownOfACard) {
  device_ = {.power_watts = 123.5};
  MetricWriter writer;
  Write(writer);
  EXPECT_THAT(writer.Text(), HasSubstr("stagecoach_stage_device_power_watts{stage=\"s0\"} 123.5"));
  EXPECT_THAT(writer.Text(), Not(HasSubstr("stagecoach_stage_device_utilization_ratio")));
}

TEST_F(StageMetricsTest, CountsMicroBatchesByPhaseFromZeroOn) {
  micro_batches_.Observe(Phase::kBackward, 0.003);
  micro_batches_.Observe(Phase::kBackward, 0.003);
  micro_batches_.Observe(Phase::kBubble, 1);
  MetricWriter writer;
  Write(writer);
  const std::string text = writer.Text();
  for (const char* line :
       {"{stage=\"s0\",phase=\"forward\"} 0", "{stage=\"s0\",phase=\"recompute\"} 0",
        "{stage=\"s0\",phase=\"backward\"} 2"}) {
    EXPECT_THAT(text, HasSubstr(absl::StrCat("stagecoach_stage_microbatches_total", line)));
  }
  EXPECT_THAT(text, HasSubstr("stagecoach_stage_microbatch_duration_seconds_bucket{stage=\"s0\","
                              "phase=\"backward\",le=\"0.004\"} 2"));
}

TEST_F(StageMetricsTest, LinkCountersOutliveALink) {
  downstream_.sent_bytes = 500;
  downstream_.reconnects = 2;
  downstream_.repeats = 4;
  status_.downstream.reset();  // aborted: no link just now
  MetricWriter writer;
  Write(writer);
  const std::string text = writer.Text();
  EXPECT_THAT(text, HasSubstr("stagecoach_link_sent_bytes_total{stage=\"s0\",peer=\"downstream\","
                              "kind=\"activation\"} 500"));
  EXPECT_THAT(text,
              HasSubstr("stagecoach_link_reconnects_total{stage=\"s0\",peer=\"downstream\"} 2"));
  EXPECT_THAT(text,
              HasSubstr("stagecoach_link_reconnects_total{stage=\"s0\",peer=\"upstream\"} 0"));
  EXPECT_THAT(text, HasSubstr("stagecoach_link_repeats_total{stage=\"s0\",peer=\"downstream\"} 4"));
}

// Two stages may share several edges: the first connection of each is none again.
TEST(LinkTotals, CountsTheConnectionsOfAnEdgeBehindItsFirst) {
  LinkTotals totals;
  EXPECT_EQ(totals.reconnects.load(), 0u);
  for (const int above : {0, 2, 4}) totals.Connected(CellId(above));
  EXPECT_EQ(totals.reconnects.load(), 0u);
  totals.Connected(CellId(2));
  EXPECT_EQ(totals.reconnects.load(), 1u);
}

}  // namespace
}  // namespace stagecoach
