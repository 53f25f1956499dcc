// LinkedParts: parts of data sets that are objects of buckets outside the store. Their bytes go
// from there to who reads them, with every form of the store.
// Threads:   thread-safe; Find and Locate may wait for files.
// Errors:    NOT_FOUND: the set has no such part. Others as the implementation has them.
#ifndef STAGECOACH_SERVICES_COORDINATOR_STORE_LINKED_PARTS_H_
#define STAGECOACH_SERVICES_COORDINATOR_STORE_LINKED_PARTS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "services/coordinator/store/object_files.h"
#include "stagecoach/v1/store.pb.h"

namespace stagecoach {

class LinkedParts {
 public:
  virtual ~LinkedParts() = default;
  // Whether an object of this name is, or would be, such a part. Does not wait.
  virtual bool Has(const std::string& name) const = 0;
  // As it was when its set was made.
  virtual absl::StatusOr<ObjectSize> Find(const std::string& name) = 0;
  // A URL to read it, for so many seconds.
  virtual absl::Status Locate(const v1::LocateObjectRequest& request, int64_t seconds,
                              v1::LocateObjectResponse* response) = 0;
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COORDINATOR_STORE_LINKED_PARTS_H_
