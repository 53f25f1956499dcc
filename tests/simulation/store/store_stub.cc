#include "tests/simulation/store/store_stub.h"

#include <utility>

#include "services/common/grpc/grpc_status.h"
#include "services/common/grpc/message_checksum.h"
#include "services/common/store/store_names.h"
#include "services/common/store/store_parts.h"

namespace stagecoach {
namespace {

grpc::Status Broken(const char* why) { return {grpc::StatusCode::UNAVAILABLE, why}; }

// As MarkOwnError does at a real server (own_error.h).
void Mark(grpc::ClientContext* context) {
  using Metadata = std::multimap<grpc::string_ref, grpc::string_ref>;
  const_cast<Metadata&>(context->GetServerTrailingMetadata()).emplace("stagecoach-own-error", "1");
}

}  // namespace

grpc::Status StoreStub::Call(grpc::ClientContext* context,
                             const std::function<absl::Status(CoordinatorStore&)>& serve) {
  SimulatedNetwork& network = *parts_.network;
  const int from = parts_.host, to = parts_.coordinator_host;
  if (!network.Reaches(from, to)) return Broken("the coordinator cannot be reached");
  const CallFaults::Fate fate = parts_.faults->Next();
  if (!fate.arrives) return Broken("injected: a call of the store does not arrive");
  absl::Status status = absl::OkStatus();
  if (network.Flips(from, to)) {
    status = absl::UnavailableError("a request was changed on its way");
  } else if (fate.refusal != absl::StatusCode::kOk) {
    status = absl::Status(fate.refusal, "injected: the store refuses a call");
  } else {
    CoordinatorStore* const store = parts_.store();
    if (store == nullptr) return Broken("nobody is there");
    status = serve(*store);
  }
  if (!fate.returns) return Broken("injected: an answer of the store gets lost");
  if (network.Flips(to, from)) return Broken("an answer was changed on its way");
  if (!status.ok()) Mark(context);
  return ToGrpc(status);
}

template <typename Request, typename Response>
grpc::Status StoreStub::Unary(grpc::ClientContext* context, const Request& request,
                              Response* response,
                              absl::Status (CoordinatorStore::*serve)(const Request&, Response*)) {
  response->Clear();
  return Call(context, [&](CoordinatorStore& store) {
    const absl::Status status = (store.*serve)(request, response);
    if (status.ok()) SetChecksum(response);
    return status;
  });
}

grpc::Status StoreStub::FindObject(grpc::ClientContext* context,
                                   const v1::FindObjectRequest& request,
                                   v1::FindObjectResponse* response) {
  return Unary(context, request, response, &CoordinatorStore::Find);
}
grpc::Status StoreStub::RemoveObject(grpc::ClientContext* context,
                                     const v1::RemoveObjectRequest& request,
                                     v1::RemoveObjectResponse* response) {
  return Unary(context, request, response, &CoordinatorStore::Remove);
}
grpc::Status StoreStub::LocateObject(grpc::ClientContext* context,
                                     const v1::LocateObjectRequest& request,
                                     v1::LocateObjectResponse* response) {
  return Unary(context, request, response, &CoordinatorStore::Locate);
}
grpc::Status StoreStub::CompleteObject(grpc::ClientContext* context,
                                       const v1::CompleteObjectRequest& request,
                                       v1::CompleteObjectResponse* response) {
  return Unary(context, request, response, &CoordinatorStore::Complete);
}

// All that was asked for, or its first half and a broken connection.
class StoreStub::Reader final : public grpc::ClientReaderInterface<v1::ReadObjectResponse> {
 public:
  Reader(StoreStub* stub, grpc::ClientContext* context, const v1::ReadObjectRequest& request) {
    status_ = stub->Call(context, [&](CoordinatorStore& store) {
      absl::StatusOr<std::string> bytes = store.Read(request);
      if (bytes.ok()) bytes_ = *std::move(bytes);
      return bytes.status();
    });
    if (!status_.ok()) bytes_.erase(bytes_.size() / 2);
  }
  bool Read(v1::ReadObjectResponse* part) override {
    if (bytes_.empty()) return false;
    part->set_data(bytes_.substr(0, kStorePartBytes));
    part->set_crc32c(CrcOf(*part));
    bytes_.erase(0, part->data().size());
    return true;
  }
  grpc::Status Finish() override { return status_; }
  bool NextMessageSize(uint32_t*) override { return !bytes_.empty(); }
  void WaitForInitialMetadata() override {}

 private:
  std::string bytes_;
  grpc::Status status_;
};

// The messages arrive together, once the last one was written.
class StoreStub::Writer final : public grpc::ClientWriterInterface<v1::WriteObjectRequest> {
 public:
  Writer(StoreStub* stub, grpc::ClientContext* context, v1::WriteObjectResponse* response)
      : stub_(*stub), context_(context), response_(response) {}
  bool Write(const v1::WriteObjectRequest& part, grpc::WriteOptions) override {
    parts_.push_back(part);
    return true;
  }
  bool WritesDone() override { return true; }
  grpc::Status Finish() override {
    response_->Clear();
    return stub_.Call(context_, [&](CoordinatorStore& store) {
      const absl::StatusOr<int64_t> committed = store.Write(parts_);
      response_->set_committed_size(committed.value_or(0));
      SetChecksum(response_);
      return committed.status();
    });
  }

 private:
  StoreStub& stub_;
  grpc::ClientContext* const context_;
  v1::WriteObjectResponse* const response_;
  std::vector<v1::WriteObjectRequest> parts_;
};

grpc::ClientReaderInterface<v1::ReadObjectResponse>* StoreStub::ReadObjectRaw(
    grpc::ClientContext* context, const v1::ReadObjectRequest& request) {
  return new Reader(this, context, request);
}

grpc::ClientWriterInterface<v1::WriteObjectRequest>* StoreStub::WriteObjectRaw(
    grpc::ClientContext* context, v1::WriteObjectResponse* response) {
  return new Writer(this, context, response);
}

}  // namespace stagecoach
