#include "services/stage/stage_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "absl/strings/match.h"
#include "services/common/rpc_metrics.h"

namespace stagecoach {
namespace {

using ::testing::HasSubstr;

class StageMetricsTest : public ::testing::Test {
 protected:
  void Write(MetricWriter& writer) {
    WriteProcessMetrics("cpu", writer);
    rpcs_.Write(writer);
    WriteStageMetrics("s0", status_, writer);
    WriteLinkMetrics("s0", {"upstream", &upstream_, &transfer_}, status_.upstream, writer);
    WriteLinkMetrics("s0", {"downstream", &downstream_, &transfer_}, status_.downstream, writer);
  }

  RpcMetrics rpcs_{{"stagecoach.v1.StageService"}};
  StageStatus status_;
  LinkTotals upstream_, downstream_;
  Histogram transfer_{Histogram::DoublingBounds()};
};

TEST_F(StageMetricsTest, AnIdleStageExportsEveryNameOfItsList) {
  std::set<std::string> listed;
  for (const MetricDefinition* metric : AllMetrics()) {
    if (absl::StrContains(metric->by, "S")) listed.insert(metric->name);
  }
  MetricWriter writer;
  Write(writer);
  const std::vector<std::string> names = writer.Names();
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()), listed);
}

TEST_F(StageMetricsTest, LinkCountersOutliveALink) {
  downstream_.sent_bytes = 500;
  downstream_.connections = 3;
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
}

}  // namespace
}  // namespace stagecoach
