#include "services/common/observe/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "services/common/grpc/rpc_metrics.h"
#include "stagecoach/v1/job.grpc.pb.h"

namespace stagecoach {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Metrics, TextHasHelpTypeLabelsAndValue) {
  MetricWriter writer;
  writer.Add(metric::kStageMemory, {"stage-a", "gradients"}, 4096);
  writer.Add(metric::kStageMemory, {"stage-a", "optimizer"}, 8192);
  const std::string text = writer.Text();
  EXPECT_THAT(text, HasSubstr("# TYPE stagecoach_stage_memory_bytes gauge\n"));
  EXPECT_THAT(
      text,
      HasSubstr("stagecoach_stage_memory_bytes{stage=\"stage-a\",kind=\"gradients\"} 4096\n"));
  EXPECT_EQ(text.find("# HELP"), text.rfind("# HELP")) << "one family, two metrics";
}

TEST(Metrics, LabelValuesFromOutsideAreEscaped) {
  MetricWriter writer;
  writer.Add(metric::kJobInfo, {"a", "na\"me\n", "gpt", "2", "4"}, 1);
  EXPECT_THAT(writer.Text(), HasSubstr("name=\"na\\\"me\\n\""));
}

TEST(Metrics, HistogramBucketsAreCumulative) {
  Histogram histogram({1, 2, 4});
  for (const double value : {0.5, 1.0, 1.5, 100.0}) histogram.Observe(value);
  const Histogram::Snapshot snapshot = histogram.snapshot();
  EXPECT_EQ(snapshot.cumulative, (std::vector<uint64_t>{2, 3, 3}));
  EXPECT_EQ(snapshot.count, 4u);
  EXPECT_DOUBLE_EQ(snapshot.sum, 103.0);
  MetricWriter writer;
  writer.Add(metric::kStepSeconds, {}, snapshot);
  EXPECT_THAT(writer.Text(),
              HasSubstr("stagecoach_train_step_duration_seconds_bucket{le=\"+Inf\"} 4"));
}

TEST(Metrics, ProcessMetricsAreOfThisProcess) {
  MetricsRegistry registry;
  registry.AddSource([](MetricWriter& writer) { WriteProcessMetrics("cpu", writer); });
  const std::string text = registry.Render();
  EXPECT_THAT(text,
              HasSubstr("stagecoach_build_info{version=\"" STAGECOACH_VERSION "\",revision="));
  EXPECT_THAT(text, HasSubstr("device=\"cpu\"} 1"));
  EXPECT_THAT(text, Not(HasSubstr("process_resident_memory_bytes 0\n")));
  EXPECT_THAT(text, Not(HasSubstr("process_start_time_seconds 0\n")));
}

TEST(RpcMetrics, ExportsZerosFromTheStartAndCountsByCode) {
  RpcMetrics metrics({"stagecoach.v1.JobService"});
  MetricWriter before;
  metrics.Write(before);
  EXPECT_THAT(before.Text(), HasSubstr("grpc_method=\"SubmitJob\",grpc_code=\"OK\"} 0"));
  metrics.Handled("stagecoach.v1.JobService", "SubmitJob", 3, 0.004);
  MetricWriter after;
  metrics.Write(after);
  EXPECT_THAT(after.Text(),
              HasSubstr("grpc_method=\"SubmitJob\",grpc_code=\"INVALID_ARGUMENT\"} 1"));
}

}  // namespace
}  // namespace stagecoach
