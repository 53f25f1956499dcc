// StoreClient: the coordinator's store for a stage or a person's client. A call that breaks on the
// way goes on where it was: what was read stays, and FindObject tells what was written. It gives up
// when nothing has moved for give_up_seconds.
// Ownership: owns its channel, which no other traffic shares.
// Threads:   thread-safe; calls wait, and tick progress (base/threads/progress.h) at each part.
// Errors:    the server's own, as of proto/stagecoach/v1/store.proto. UNAVAILABLE: nothing moved, with
//            the object, the place and the last error. CANCELLED after Shutdown. DATA_LOSS: the
//            object is shorter than asked for.
#ifndef STAGECOACH_SERVICES_COMMON_STORE_STORE_CLIENT_H_
#define STAGECOACH_SERVICES_COMMON_STORE_STORE_CLIENT_H_

#include <grpcpp/grpcpp.h>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/threads/clock.h"
#include "services/common/store/direct_objects.h"
#include "stagecoach/v1/store.grpc.pb.h"

namespace stagecoach {

class StoreClient {
 public:
  struct Options {
    std::function<std::shared_ptr<grpc::Channel>()> dial;  // the coordinator, anew
    double call_seconds = 30;     // of one call; a longer transfer has several
    double give_up_seconds = 60;  // without a byte
    // A simulation's, which has no threads and a time of its own. Null: the real ones.
    std::function<std::shared_ptr<v1::StoreService::StubInterface>()> stub = nullptr;  // anew
    HttpTransfer* transfer = nullptr;  // also waits in this client's place
    const Clock* clock = SystemClock::Get();
  };
  struct Size {
    int64_t committed = 0;
    bool complete = false;
    std::vector<v1::UploadedPart> uploaded = {};  // in a bucket: the parts that `committed` has
  };

  explicit StoreClient(Options options);
  void Shutdown();  // cancels running calls

  absl::StatusOr<Size> Find(const StoredObject& object);
  absl::Status Read(const StoredObject& object, int64_t offset, std::span<std::byte> target);
  // Writes at the committed size, which must be `offset`; in a bucket it may be the end of an earlier
  // one of the uploaded parts. Returns once the bytes are there; with
  // `finish` the object is then complete and durable.
  absl::Status Append(const StoredObject& object, int64_t offset, std::span<const std::byte> bytes,
                      bool finish);
  absl::Status Remove(const StoredObject& object);
  // Whether its bytes lie in a bucket: this client then moves them itself, each read a request over
  // a long way.
  absl::StatusOr<bool> IsDirect(const StoredObject& object);

 private:
  class Tries;
  using Stub = v1::StoreService::StubInterface;
  std::shared_ptr<Stub> StubNow();
  void Forget(const std::shared_ptr<Stub>& stub);  // the next call dials anew
  // Makes one call with a deadline; `call` gets stub and context.
  template <typename Call>
  absl::Status Once(Call call, double more_seconds = 0);
  // The same again until it succeeds, or its error is final.
  template <typename Response, typename Call>
  absl::Status Unary(const StoredObject& object, Response* response, Call call);
  bool WaitClosed(double seconds);
  // Without URLs: the bytes go through the coordinator.
  absl::StatusOr<v1::LocateObjectResponse> Locate(const StoredObject& object,
                                                  v1::LocateObjectRequest request);
  absl::Status Complete(const StoredObject& object, v1::CompleteObjectRequest request);

  const Options options_;
  DirectObjects direct_objects_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  bool closed_ = false;
  std::shared_ptr<Stub> stub_;
  std::map<std::string, bool> direct_;  // by object: what the coordinator behind stub_ said
  std::set<grpc::ClientContext*> under_way_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_STORE_STORE_CLIENT_H_
