// LinkObjects: the objects of buckets that a job's paths name, as the manifest of a data set: one part
// an object, named by source and ETag, and the file BUCKET/KEY of it. As with files that
// `stagecoach submit` uploads, the neighbours of a tokenizer or an index of weights belong to it.
// Ownership: borrows the buckets.
// Threads:   any; waits for the server.
// Errors:    as DataBuckets, beginning with the field: "data.text.path = "s3://a/b": ...".
//            INVALID_ARGUMENT: no such object or folder.
#ifndef STAGECOACH_SERVICES_COORDINATOR_DATA_LINKED_SET_H_
#define STAGECOACH_SERVICES_COORDINATOR_DATA_LINKED_SET_H_

#include <cstddef>
#include <vector>

#include "absl/status/statusor.h"
#include "plan/data/data_sets_of.h"
#include "services/coordinator/data/data_buckets.h"
#include "stagecoach/v1/data_sets.pb.h"

namespace stagecoach {

inline constexpr size_t kMostLinkedObjects = 100'000;  // of a job

// paths: of PathsInBuckets; not empty.
absl::StatusOr<v1::DataManifest> LinkObjects(DataBuckets* buckets,
                                             const std::vector<ClusterPath>& paths);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COORDINATOR_DATA_LINKED_SET_H_
