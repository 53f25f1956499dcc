// Metrics of a stage server, read from the runtime's snapshot at every scrape.
#ifndef STAGECOACH_SERVICES_STAGE_STAGE_METRICS_H_
#define STAGECOACH_SERVICES_STAGE_STAGE_METRICS_H_

#include <string>

#include "services/common/metrics.h"
#include "stage/stage_runtime.h"

namespace stagecoach {

void WriteStageMetrics(const std::string& stage_name, const StageStatus& status,
                       MetricWriter& writer);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_STAGE_STAGE_METRICS_H_
