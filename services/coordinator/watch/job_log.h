// LogRecord: logs the events of a job at the coordinator: accepted, planned, loading, running,
// recovery and why, checkpoint, evaluation, end. Steps are debug lines.
// Threads: any; JobManager calls it on the job loop (JobManager::Parts::on_record).
#ifndef STAGECOACH_SERVICES_COORDINATOR_WATCH_JOB_LOG_H_
#define STAGECOACH_SERVICES_COORDINATOR_WATCH_JOB_LOG_H_

#include <string>

#include "coordinator/job/view/job_view.h"

namespace stagecoach {

void LogRecord(const std::string& job, const JobRecord& record);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COORDINATOR_WATCH_JOB_LOG_H_
