// StoreStub: a stage's calls of the store, in the place of gRPC's: each happens at one moment, if
// both ways are open and the coordinator's process lives. StoreClient and RemoteStoreFiles above it
// are the real ones. A flipped bit is found, as by the real calls' checksums.
// Ownership: borrows all of Parts.
// Threads:   one.
// Errors:    UNAVAILABLE, or the server's, which carry its mark.
#ifndef STAGECOACH_TESTS_SIMULATION_STORE_STORE_STUB_H_
#define STAGECOACH_TESTS_SIMULATION_STORE_STORE_STUB_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "stagecoach/v1/store.grpc.pb.h"
#include "tests/simulation/host/simulated_network.h"
#include "tests/simulation/store/call_faults.h"
#include "tests/simulation/store/coordinator_store.h"

namespace stagecoach {

class StoreStub final : public v1::StoreService::StubInterface {
 public:
  struct Parts {
    SimulatedNetwork* network = nullptr;
    CallFaults* faults = nullptr;
    int host = 0, coordinator_host = 0;
    std::function<CoordinatorStore*()> store;  // of a process that lives
  };
  explicit StoreStub(Parts parts) : parts_(std::move(parts)) {}

  grpc::Status FindObject(grpc::ClientContext* context, const v1::FindObjectRequest& request,
                          v1::FindObjectResponse* response) override;
  grpc::Status RemoveObject(grpc::ClientContext* context, const v1::RemoveObjectRequest& request,
                            v1::RemoveObjectResponse* response) override;
  grpc::Status LocateObject(grpc::ClientContext* context, const v1::LocateObjectRequest& request,
                            v1::LocateObjectResponse* response) override;
  grpc::Status CompleteObject(grpc::ClientContext* context,
                              const v1::CompleteObjectRequest& request,
                              v1::CompleteObjectResponse* response) override;

 private:
  class Reader;
  class Writer;
  // `serve` is called if the request arrives. What the caller hears.
  grpc::Status Call(grpc::ClientContext* context,
                    const std::function<absl::Status(CoordinatorStore&)>& serve);
  template <typename Request, typename Response>
  grpc::Status Unary(grpc::ClientContext* context, const Request& request, Response* response,
                     absl::Status (CoordinatorStore::*serve)(const Request&, Response*));

  grpc::ClientReaderInterface<v1::ReadObjectResponse>* ReadObjectRaw(
      grpc::ClientContext* context, const v1::ReadObjectRequest& request) override;
  grpc::ClientWriterInterface<v1::WriteObjectRequest>* WriteObjectRaw(
      grpc::ClientContext* context, v1::WriteObjectResponse* response) override;

  // What StoreClient does not call.
  template <typename Response>
  using Answers = grpc::ClientAsyncResponseReaderInterface<Response>;
  Answers<v1::FindObjectResponse>* AsyncFindObjectRaw(grpc::ClientContext*,
                                                      const v1::FindObjectRequest&,
                                                      grpc::CompletionQueue*) override {
    return nullptr;
  }
  Answers<v1::FindObjectResponse>* PrepareAsyncFindObjectRaw(grpc::ClientContext*,
                                                             const v1::FindObjectRequest&,
                                                             grpc::CompletionQueue*) override {
    return nullptr;
  }
  grpc::ClientAsyncReaderInterface<v1::ReadObjectResponse>* AsyncReadObjectRaw(
      grpc::ClientContext*, const v1::ReadObjectRequest&, grpc::CompletionQueue*, void*) override {
    return nullptr;
  }
  grpc::ClientAsyncReaderInterface<v1::ReadObjectResponse>* PrepareAsyncReadObjectRaw(
      grpc::ClientContext*, const v1::ReadObjectRequest&, grpc::CompletionQueue*) override {
    return nullptr;
  }
  grpc::ClientAsyncWriterInterface<v1::WriteObjectRequest>* AsyncWriteObjectRaw(
      grpc::ClientContext*, v1::WriteObjectResponse*, grpc::CompletionQueue*, void*) override {
    return nullptr;
  }
  grpc::ClientAsyncWriterInterface<v1::WriteObjectRequest>* PrepareAsyncWriteObjectRaw(
      grpc::ClientContext*, v1::WriteObjectResponse*, grpc::CompletionQueue*) override {
    return nullptr;
  }
  Answers<v1::RemoveObjectResponse>* AsyncRemoveObjectRaw(grpc::ClientContext*,
                                                          const v1::RemoveObjectRequest&,
                                                          grpc::CompletionQueue*) override {
    return nullptr;
  }
  Answers<v1::RemoveObjectResponse>* PrepareAsyncRemoveObjectRaw(grpc::ClientContext*,
                                                                 const v1::RemoveObjectRequest&,
                                                                 grpc::CompletionQueue*) override {
    return nullptr;
  }
  Answers<v1::LocateObjectResponse>* AsyncLocateObjectRaw(grpc::ClientContext*,
                                                          const v1::LocateObjectRequest&,
                                                          grpc::CompletionQueue*) override {
    return nullptr;
  }
  Answers<v1::LocateObjectResponse>* PrepareAsyncLocateObjectRaw(grpc::ClientContext*,
                                                                 const v1::LocateObjectRequest&,
                                                                 grpc::CompletionQueue*) override {
    return nullptr;
  }
  Answers<v1::CompleteObjectResponse>* AsyncCompleteObjectRaw(grpc::ClientContext*,
                                                              const v1::CompleteObjectRequest&,
                                                              grpc::CompletionQueue*) override {
    return nullptr;
  }
  Answers<v1::CompleteObjectResponse>* PrepareAsyncCompleteObjectRaw(
      grpc::ClientContext*, const v1::CompleteObjectRequest&, grpc::CompletionQueue*) override {
    return nullptr;
  }

  const Parts parts_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_TESTS_SIMULATION_STORE_STORE_STUB_H_
