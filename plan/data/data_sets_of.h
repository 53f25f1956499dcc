// DataSetsOf: the data sets of the cluster that a job's paths name (plan/data/data_set_path.h), and
// its paths in buckets (plan/data/bucket_path.h).
// Threads: pure functions.
#ifndef STAGECOACH_PLAN_DATA_DATA_SETS_OF_H_
#define STAGECOACH_PLAN_DATA_DATA_SETS_OF_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "plan/job/job_spec.h"

namespace stagecoach {

// Ids, or names where no coordinator has put the ids in; sorted, each once. Paths that cannot be
// read name none.
std::vector<std::string> DataSetsOf(const JobSpec& spec);

// A path of the job that is in a data set or in a bucket.
struct ClusterPath {
  std::string field;                  // "data.text.path", "initialize.from"
  std::string path;                   // "store:/data/cats/train.txt", "s3://corpora/train.txt"
  bool file = false, folder = false;  // what the field may name
};
// Of paths that stages read, in the order of the fields, files beside those that the job names among
// them; unchecked.
std::vector<ClusterPath> PathsInDataSets(const JobSpec& spec);
// As PathsInDataSets, of paths in buckets.
std::vector<ClusterPath> PathsInBuckets(const JobSpec& spec);
// INVALID_ARGUMENT naming field, path and remedy: one is written "S3://BUCKET/KEY".
absl::Status CheckBucketSpelling(const JobSpec& spec);

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_DATA_DATA_SETS_OF_H_
