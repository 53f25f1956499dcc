#include "services/cli/client/data_client.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "services/common/convert/clean_texts.h"
#include "services/common/grpc/grpc_status.h"
#include "stagecoach/v1/data_sets.grpc.pb.h"

namespace stagecoach {
namespace {

// Of calls that read or write a manifest, which may have a million lines.
constexpr double kManifestTimeoutSeconds = 120;

class GrpcDataClient final : public DataClient {
 public:
  GrpcDataClient(const std::shared_ptr<grpc::Channel>& channel,
                 std::function<std::shared_ptr<grpc::Channel>()> dial, std::string name,
                 double timeout_seconds)
      : name_(std::move(name)),
        timeout_seconds_(timeout_seconds),
        stub_(v1::DataService::NewStub(channel)),
        store_(std::make_shared<StoreClient>(StoreClient::Options{.dial = std::move(dial)})) {}

  absl::StatusOr<v1::PrepareUploadResponse> PrepareUpload(
      const v1::PrepareUploadRequest& request) override {
    return Call<v1::PrepareUploadResponse>(&v1::DataService::Stub::PrepareUpload, request,
                                           kManifestTimeoutSeconds);
  }
  absl::StatusOr<v1::PutDataSetResponse> Put(const v1::PutDataSetRequest& request) override {
    return Call<v1::PutDataSetResponse>(&v1::DataService::Stub::PutDataSet, request,
                                        kManifestTimeoutSeconds);
  }
  absl::StatusOr<v1::ListDataSetsResponse> List() override {
    return Call<v1::ListDataSetsResponse>(&v1::DataService::Stub::ListDataSets,
                                          v1::ListDataSetsRequest(), timeout_seconds_);
  }
  absl::StatusOr<v1::OpenDataSetResponse> Open(const std::string& data_set) override {
    v1::OpenDataSetRequest request;
    request.set_data_set(data_set);
    return Call<v1::OpenDataSetResponse>(&v1::DataService::Stub::OpenDataSet, request,
                                         timeout_seconds_);
  }
  absl::StatusOr<v1::RemoveDataSetResponse> Remove(const std::string& data_set) override {
    v1::RemoveDataSetRequest request;
    request.set_data_set(data_set);
    return Call<v1::RemoveDataSetResponse>(&v1::DataService::Stub::RemoveDataSet, request,
                                           kManifestTimeoutSeconds);
  }

  absl::StatusOr<StoreClient::Size> Find(const StoredObject& object) override {
    return store_->Find(object);
  }
  absl::Status Read(const StoredObject& object, int64_t offset,
                    std::span<std::byte> target) override {
    return Annotate(store_->Read(object, offset, target), "coordinator");
  }
  absl::Status Append(const StoredObject& object, int64_t offset, std::span<const std::byte> bytes,
                      bool finish) override {
    return store_->Append(object, offset, bytes, finish);
  }
  absl::StatusOr<bool> IsDirect(const StoredObject& object) override {
    return store_->IsDirect(object);
  }
  std::function<void()> Stopper() override {
    return [store = store_] { store->Shutdown(); };
  }

 private:
  template <typename Response, typename Method, typename Request>
  absl::StatusOr<Response> Call(Method method, const Request& request, double seconds) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() +
                         std::chrono::microseconds(static_cast<int64_t>(seconds * 1e6)));
    Response response;
    const absl::Status status = FromGrpc(((*stub_).*method)(&context, request, &response));
    if (absl::IsUnimplemented(status)) {
      return absl::UnimplementedError(absl::StrCat(
          "coordinator ", name_,
          ": is older and keeps no data sets; update it, or put the data on the stages' machines "
          "and name it there with on_stages: FOLDER"));
    }
    if (absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status)) {
      return Annotate(status, absl::StrCat("coordinator ", name_));
    }
    RETURN_IF_ERROR(status);
    CleanTexts(&response);
    return response;
  }

  const std::string name_;
  const double timeout_seconds_;
  const std::unique_ptr<v1::DataService::Stub> stub_;
  const std::shared_ptr<StoreClient> store_;  // shared with stoppers
};

}  // namespace

std::unique_ptr<DataClient> MakeDataClient(const std::shared_ptr<grpc::Channel>& channel,
                                           std::function<std::shared_ptr<grpc::Channel>()> dial,
                                           std::string name, double timeout_seconds) {
  return std::make_unique<GrpcDataClient>(channel, std::move(dial), std::move(name),
                                          timeout_seconds);
}

}  // namespace stagecoach
