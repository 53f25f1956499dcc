// DirectObjects: bytes of objects that lie in a bucket, moved by URLs that the coordinator signs.
// Ownership: owns its connections.
// Threads:   thread-safe, one writer an object; calls wait, and tick progress as bytes move.
// Errors:    as `calls`. UNAVAILABLE: nothing has moved for give_up_seconds. DATA_LOSS: the object
//            is shorter than asked for, or its upload is gone. CANCELLED after Shutdown. No message
//            has a URL.
#ifndef STAGECOACH_SERVICES_COMMON_STORE_DIRECT_OBJECTS_H_
#define STAGECOACH_SERVICES_COMMON_STORE_DIRECT_OBJECTS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "services/common/s3/http_transfer.h"
#include "stagecoach/v1/store.pb.h"

namespace stagecoach {

struct StoredObject {
  std::string name;   // "checkpoints/JOB/FOLDER/FILE"
  std::string grant;  // for its folder
};

class DirectObjects {
 public:
  struct Calls {  // to the coordinator; name, grant and checksum are added
    std::function<absl::StatusOr<v1::LocateObjectResponse>(const StoredObject&,
                                                           v1::LocateObjectRequest)>
        locate;
    std::function<absl::Status(const StoredObject&, v1::CompleteObjectRequest)> complete;
  };

  DirectObjects(Calls calls, double give_up_seconds)
      : calls_(std::move(calls)), give_up_seconds_(give_up_seconds) {}
  void Shutdown() { transfer_.Shutdown(); }

  absl::Status Read(const StoredObject& object, int64_t offset, std::span<std::byte> target);
  // As StoreClient::Append. An object of one call is one PUT; others go in parts, one a call.
  absl::Status Append(const StoredObject& object, int64_t offset, std::span<const std::byte> bytes,
                      bool finish);

 private:
  struct Upload {
    std::string id;
    std::vector<std::string> urls;  // of the parts to come, the next one last
    std::vector<std::string> etags;
    int64_t bytes = 0;
  };
  absl::StatusOr<std::string> UrlOf(const StoredObject& object, v1::ObjectUse use);
  absl::StatusOr<std::string> ReadUrl(const StoredObject& object, bool anew);
  absl::Status LocateParts(const StoredObject& object, Upload& upload);
  // Sends one body; `next_url` gives a URL, and a new one if the last has expired. The ETag.
  absl::StatusOr<std::string> Put(const StoredObject& object, std::span<const std::byte> bytes,
                                  const std::function<absl::StatusOr<std::string>()>& next_url);
  absl::Status AppendPart(const StoredObject& object, Upload& upload,
                          std::span<const std::byte> bytes);
  absl::Status Complete(const StoredObject& object, const Upload& upload);

  const Calls calls_;
  const double give_up_seconds_;
  HttpTransfer transfer_;
  std::mutex mutex_;                              // guards what follows
  std::map<std::string, std::string> read_urls_;  // by the object's name
  std::map<std::string, Upload> uploads_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_STORE_DIRECT_OBJECTS_H_
