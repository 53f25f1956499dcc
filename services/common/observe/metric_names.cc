#include "services/common/observe/metric_names.h"

namespace stagecoach {

std::span<const MetricDefinition* const> AllMetrics() {
  using namespace metric;
  static constexpr const MetricDefinition* kAll[] = {&kBuildInfo,
                                                     &kRpcHandled,
                                                     &kRpcSeconds,
                                                     &kProcessCpu,
                                                     &kProcessMemory,
                                                     &kProcessFds,
                                                     &kProcessStart,
                                                     &kStageTime,
                                                     &kStageMicroBatches,
                                                     &kStageMicroBatchSeconds,
                                                     &kStageMemory,
                                                     &kStageMemoryPeak,
                                                     &kStageMemoryLimit,
                                                     &kDeviceUtilization,
                                                     &kDevicePower,
                                                     &kDeviceTemperature,
                                                     &kDeviceMemoryUsed,
                                                     &kDeviceMemory,
                                                     &kLinkSent,
                                                     &kLinkReceived,
                                                     &kLinkTransfer,
                                                     &kLinkInflight,
                                                     &kLinkReconnects,
                                                     &kJobInfo,
                                                     &kJobs,
                                                     &kJobsSubmitted,
                                                     &kJobsFinished,
                                                     &kJobQueueWait,
                                                     &kStages,
                                                     &kStageHeartbeat,
                                                     &kBubble,
                                                     &kBubbleIdeal,
                                                     &kImbalance,
                                                     &kStep,
                                                     &kTargetSteps,
                                                     &kSteps,
                                                     &kStepSeconds,
                                                     &kExamples,
                                                     &kTokens,
                                                     &kFlops,
                                                     &kLoss,
                                                     &kLearningRate,
                                                     &kGradientNorm,
                                                     &kNonfinite,
                                                     &kExpectedEnd,

                                                     &kRecoveries,
                                                     &kStageRecoveries,
                                                     &kDataWait,
                                                     &kCheckpointSeconds,
                                                     &kCheckpointSize,
                                                     &kCheckpointTime,
                                                     &kCheckpointStep,
                                                     &kCheckpointFailures};
  return kAll;
}

}  // namespace stagecoach
