// SetParts: which object of a bucket a data set's part is (services/coordinator/data/data_bucket.h).
// Threads: thread-safe; calls may wait for the bucket's server.
// Errors:  NOT_FOUND: there is no such set, or its manifest does not name the part. Those of S3Client.
#ifndef STAGECOACH_SERVICES_COORDINATOR_STORE_SET_PARTS_H_
#define STAGECOACH_SERVICES_COORDINATOR_STORE_SET_PARTS_H_

#include <string>

#include "absl/status/statusor.h"

namespace stagecoach {

class SetParts {
 public:
  virtual ~SetParts() = default;
  // The key of `name`, "manifest" or a part's SHA-256, of the set of this id.
  virtual absl::StatusOr<std::string> KeyInSet(const std::string& id, const std::string& name) = 0;
  // The key of an owner's part, by OwnerKey.
  virtual std::string KeyOfPart(const std::string& owner, const std::string& sha256) const = 0;
  // It was completed now: a server may tell the time when its upload began.
  virtual void NoteComplete(const std::string& owner, const std::string& sha256) = 0;
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COORDINATOR_STORE_SET_PARTS_H_
