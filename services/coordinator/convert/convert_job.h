// Conversion of the coordinator's values (coordinator/loop/job_manager.h, plan/plan.h) to and from
// proto/stagecoach/v1/{job,fleet}.proto.
#ifndef STAGECOACH_SERVICES_COORDINATOR_CONVERT_CONVERT_JOB_H_
#define STAGECOACH_SERVICES_COORDINATOR_CONVERT_CONVERT_JOB_H_

#include "coordinator/loop/job_manager.h"
#include "stagecoach/v1/fleet.pb.h"
#include "stagecoach/v1/job.pb.h"

namespace stagecoach {

// PENDING: submitted, planned, loading. RUNNING: also recovering and finishing.
v1::JobState JobStateOf(JobPhase phase);
v1::Job ToProto(const JobView& view);
// Leaves out the spec and the measures of single classes, which are too large for lists of many
// jobs.
v1::Job ToListed(const JobView& view);
// Jobs on a page of a list: by default, and at most.
inline constexpr int kPageJobs = 100, kMostPageJobs = 1000;
v1::ListJobsResponse ToProto(const JobManager::Page& page);
// Start of a page by its token: `before` of JobManager::ListPage. INVALID_ARGUMENT names `field`.
absl::StatusOr<uint64_t> PageStart(const std::string& token, const char* field);
v1::WatchJobResponse ToProto(const JobRecord& record);
// DATA_LOSS: as coordinator/job/view/shown_json.h.
absl::StatusOr<v1::GetShownPicturesResponse> ShownToProto(const ShownTexts& shown, bool with_files);

v1::JobUsage ToProto(const JobUsage& usage);

v1::Stage ToProto(const StageRegistration& registration);
StageRegistration FromProto(const v1::Stage& proto);
StageHeartbeat FromProto(const v1::RenewLeaseRequest& proto);
v1::StageTelemetry ToProto(const StageTotals& totals);
StageTotals FromProto(const v1::StageTelemetry& proto);  // drops neighbours beyond kMaxNeighbours
v1::StageInfo ToProto(const StageView& view);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COORDINATOR_CONVERT_CONVERT_JOB_H_
