// ResolveDataPaths: puts the ids of data sets in the place of their names in a job's paths. It checks
// that the sets are here and the caller's, and that they have what the paths name. Of the job's paths
// in buckets it makes a data set that is linked to their objects (linked_set.h).
// Ownership: borrows catalog and buckets.
// Threads:   any; waits for files, and with paths in buckets for their server.
// Errors:    begin with the field, as "data.text.path = "train.txt": data set cats has no such file".
//            NOT_FOUND: no such set. INVALID_ARGUMENT: no such file or folder in it. As LinkObjects.
#ifndef STAGECOACH_SERVICES_COORDINATOR_DATA_DATA_RESOLUTION_H_
#define STAGECOACH_SERVICES_COORDINATOR_DATA_DATA_RESOLUTION_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/job/job_caller.h"
#include "coordinator/job/view/job_view.h"
#include "plan/job/job_spec.h"
#include "services/coordinator/data/data_buckets.h"
#include "services/coordinator/data/data_catalog.h"

namespace stagecoach {

// Keeps the job's sets until it is accepted or refused.
using DataHolds = std::vector<std::shared_ptr<const void>>;

struct ResolvedJob {
  JobSpec spec;
  DataHolds holds;
};
absl::StatusOr<ResolvedJob> ResolveDataPaths(DataCatalog* catalog, DataBuckets* buckets,
                                             const JobCaller& caller, JobSpec spec);

// The jobs that have not ended, by the ids of the sets that their paths name.
using JobsOfSets = std::map<std::string, std::vector<std::string>>;
JobsOfSets JobsReading(const std::vector<JobView>& jobs);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COORDINATOR_DATA_DATA_RESOLUTION_H_
