// JobOutput: jobs, stages, checkpoints and plans as tables or as the proto3 JSON of the response.
// Threads: pure functions.
#ifndef STAGECOACH_SERVICES_CLI_OUTPUT_JOB_OUTPUT_H_
#define STAGECOACH_SERVICES_CLI_OUTPUT_JOB_OUTPUT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "google/protobuf/message.h"
#include "services/cli/output/console.h"
#include "stagecoach/v1/fleet.pb.h"
#include "stagecoach/v1/job.pb.h"

namespace stagecoach {

// One line for ndjson, indented for json. Field names as in the .proto files.
std::string ToJson(const google::protobuf::Message& message, OutputFormat format);

std::string JobTable(const v1::ListJobsResponse& jobs, const Console& console);
std::string JobDescription(const v1::Job& job, const Console& console);
// Bytes of checkpoints, exports and records.
int64_t TotalBytes(const v1::JobUsage& usage);
// What ended jobs occupy.
std::string UsageTable(const std::vector<v1::Job>& jobs, const Console& console);
std::string StageTable(const v1::ListStagesResponse& stages, double now_unix_seconds,
                       const Console& console);
std::string CheckpointTable(const v1::ListCheckpointsResponse& checkpoints, const Console& console);
std::string PlanText(const v1::PlanJobResponse& plan, bool with_schedule);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_OUTPUT_JOB_OUTPUT_H_
