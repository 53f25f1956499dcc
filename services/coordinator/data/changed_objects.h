// ChangedObjects: which objects of buckets were replaced, added or removed between two submissions of
// the same paths, for people. Each submission has a linked set of its own (linked_set.h).
// Ownership: borrows the catalog.
// Threads:   any; waits for the sets' manifests.
// Errors:    none: what cannot be read any more is said.
#ifndef STAGECOACH_SERVICES_COORDINATOR_DATA_CHANGED_OBJECTS_H_
#define STAGECOACH_SERVICES_COORDINATOR_DATA_CHANGED_OBJECTS_H_

#include <string>

#include "plan/job/job_spec.h"
#include "services/coordinator/data/data_catalog.h"

namespace stagecoach {

// "s3://a/b: ETag "1" of 5 bytes then, "2" of 6 bytes now", some of these with "; " between. Empty: no
// path of both jobs is in a linked set of now that is another one than then.
std::string ChangedObjects(DataCatalog* catalog, const JobSpec& then, const JobSpec& now);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COORDINATOR_DATA_CHANGED_OBJECTS_H_
