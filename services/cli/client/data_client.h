// DataClient: the calls about data sets that commands make on a coordinator, and the store's part
// in them; tests put a fake in its place (services/cli/testing/fake_data_client.h).
// Threads:   one thread per object, except that a stop ends transfers from any thread.
// Errors:    the coordinator's codes. UNIMPLEMENTED: it is older and keeps no data sets; the message
//            says what to do. Those of StoreClient.
#ifndef STAGECOACH_SERVICES_CLI_CLIENT_DATA_CLIENT_H_
#define STAGECOACH_SERVICES_CLI_CLIENT_DATA_CLIENT_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "services/common/store/store_client.h"
#include "stagecoach/v1/data_sets.pb.h"

namespace stagecoach {

class DataClient {
 public:
  virtual ~DataClient() = default;

  virtual absl::StatusOr<v1::PrepareUploadResponse> PrepareUpload(
      const v1::PrepareUploadRequest& request) = 0;
  virtual absl::StatusOr<v1::PutDataSetResponse> Put(const v1::PutDataSetRequest& request) = 0;
  virtual absl::StatusOr<v1::ListDataSetsResponse> List() = 0;
  // data_set: name or id, here and below.
  virtual absl::StatusOr<v1::OpenDataSetResponse> Open(const std::string& data_set) = 0;
  virtual absl::StatusOr<v1::RemoveDataSetResponse> Remove(const std::string& data_set) = 0;

  // As StoreClient's.
  virtual absl::StatusOr<StoreClient::Size> Find(const StoredObject& object) = 0;
  virtual absl::Status Read(const StoredObject& object, int64_t offset,
                            std::span<std::byte> target) = 0;
  virtual absl::Status Append(const StoredObject& object, int64_t offset,
                              std::span<const std::byte> bytes, bool finish) = 0;
  virtual absl::StatusOr<bool> IsDirect(const StoredObject& object) = 0;
  // Ends transfers for good; it may be called when this object is gone.
  virtual std::function<void()> Stopper() = 0;
};

// dial: the coordinator, anew, for the store. name: its address, for errors.
std::unique_ptr<DataClient> MakeDataClient(const std::shared_ptr<grpc::Channel>& channel,
                                           std::function<std::shared_ptr<grpc::Channel>()> dial,
                                           std::string name, double timeout_seconds);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_CLIENT_DATA_CLIENT_H_
