// DirectObjects: bytes of objects that lie in a bucket, moved by URLs that the coordinator signs.
// Ownership: owns its connections, unless it is given a transfer; borrows that and the clock.
// Threads:   thread-safe, one writer an object; calls wait, and tick progress as bytes move.
// Errors:    as `calls`. UNAVAILABLE: nothing has moved for give_up_seconds. DATA_LOSS: the object
//            is shorter than asked for, its upload is gone, or an object outside the store is another
//            one by now, with its name and remedy. CANCELLED after Shutdown. No message
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
#include "base/threads/clock.h"
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

  // transfer: null: its own.
  DirectObjects(Calls calls, double give_up_seconds, HttpTransfer* transfer = nullptr,
                const Clock* clock = SystemClock::Get())
      : calls_(std::move(calls)),
        give_up_seconds_(give_up_seconds),
        transfer_(transfer != nullptr ? *transfer : own_transfer_),
        clock_(*clock) {}
  void Shutdown() { transfer_.Shutdown(); }

  struct ReadPlace {
    std::string url;
    std::string if_match, source;  // of an object outside the store; else empty
  };
  // Somebody has asked already where to read the object; the answer has one URL.
  ReadPlace NotePlace(const StoredObject& object, const v1::LocateObjectResponse& located);
  absl::Status Read(const StoredObject& object, int64_t offset, std::span<std::byte> target);
  // As StoreClient::Append. An object of one call is one PUT; others go in parts, one a call.
  absl::Status Append(const StoredObject& object, int64_t offset, std::span<const std::byte> bytes,
                      bool finish);
  // Append may go on behind the parts of this upload, whoever sent them.
  void GoOn(const StoredObject& object, const v1::FindObjectResponse& found);

 private:
  struct Upload {
    std::string id;
    std::vector<std::string> urls;  // of the parts to come, the next one last
    std::vector<v1::UploadedPart> parts;
    int64_t bytes = 0;  // of the parts
  };
  // The upload that stands at this offset, or has parts that end there.
  absl::StatusOr<Upload> TakeUpload(const StoredObject& object, int64_t offset);
  absl::StatusOr<v1::LocateObjectResponse> PlaceOf(const StoredObject& object, v1::ObjectUse use);
  absl::StatusOr<std::string> UrlOf(const StoredObject& object, v1::ObjectUse use);
  absl::StatusOr<ReadPlace> ReadPlaceOf(const StoredObject& object, bool anew);
  absl::Status LocateParts(const StoredObject& object, Upload& upload);
  // Sends one body; `next_url` gives a URL, and a new one if the last has expired. The ETag.
  absl::StatusOr<std::string> Put(const StoredObject& object, std::span<const std::byte> bytes,
                                  const std::function<absl::StatusOr<std::string>()>& next_url);
  absl::Status AppendPart(const StoredObject& object, Upload& upload,
                          std::span<const std::byte> bytes);
  absl::Status Complete(const StoredObject& object, const Upload& upload);

  const Calls calls_;
  const double give_up_seconds_;
  HttpTransfer own_transfer_;
  HttpTransfer& transfer_;
  const Clock& clock_;
  std::mutex mutex_;                              // guards what follows
  std::map<std::string, ReadPlace> read_places_;  // by the object's name
  std::map<std::string, Upload> uploads_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_STORE_DIRECT_OBJECTS_H_
