// StoreService: the store's calls. Stages put and fetch checkpoints and fetch data sets, clients
// fetch exports and put parts of data sets. Files
// are read and written on threads of their own, so that no transfer delays a lease or a decision.
// Each call under way has at most one part of 512 KiB in memory.
// Ownership: borrows its parts, which outlive the server.
// Threads:   gRPC callbacks post and return.
// Errors:    as ObjectFiles and ObjectGrants. UNAVAILABLE: as many calls as there may be are under
//            way; a message was changed on its way; a call has no deadline, or one that is too far.
// See:       docs/formats.md, "Store".
#ifndef STAGECOACH_SERVICES_COORDINATOR_STORE_STORE_SERVICE_H_
#define STAGECOACH_SERVICES_COORDINATOR_STORE_STORE_SERVICE_H_

#include <grpcpp/grpcpp.h>

#include <array>
#include <atomic>
#include <functional>
#include <memory>

#include "base/threads/task_thread.h"
#include "services/coordinator/store/linked_parts.h"
#include "services/coordinator/store/object_files.h"
#include "services/coordinator/store/object_grants.h"
#include "services/coordinator/store/s3_objects.h"
#include "stagecoach/v1/store.grpc.pb.h"

namespace stagecoach {

class StoreService final : public v1::StoreService::CallbackService {
 public:
  // Streams with a grant; the next one: UNAVAILABLE. Clients' exports and parts, and what reads data
  // sets, have shares of their own: nothing keeps a stage from its checkpoints but other stages'.
  static constexpr int kMostStageStreams = 96, kMostClientStreams = 32, kMostDataStreams = 96;

  // bucket: has checkpoints and data sets in the place of `files`; null: none. linked: has its parts
  // before both; null: none.
  StoreService(ObjectFiles* files, const ObjectGrants* grants, S3Objects* bucket = nullptr,
               LinkedParts* linked = nullptr);

  grpc::ServerUnaryReactor* FindObject(grpc::CallbackServerContext* context,
                                       const v1::FindObjectRequest* request,
                                       v1::FindObjectResponse* response) override;
  grpc::ServerWriteReactor<v1::ReadObjectResponse>* ReadObject(
      grpc::CallbackServerContext* context, const v1::ReadObjectRequest* request) override;
  grpc::ServerReadReactor<v1::WriteObjectRequest>* WriteObject(
      grpc::CallbackServerContext* context, v1::WriteObjectResponse* response) override;
  grpc::ServerUnaryReactor* RemoveObject(grpc::CallbackServerContext* context,
                                         const v1::RemoveObjectRequest* request,
                                         v1::RemoveObjectResponse* response) override;
  grpc::ServerUnaryReactor* LocateObject(grpc::CallbackServerContext* context,
                                         const v1::LocateObjectRequest* request,
                                         v1::LocateObjectResponse* response) override;
  grpc::ServerUnaryReactor* CompleteObject(grpc::CallbackServerContext* context,
                                           const v1::CompleteObjectRequest* request,
                                           v1::CompleteObjectResponse* response) override;

 private:
  class Reader;
  class Writer;
  class Turn;  // one of the streams under way
  absl::Status CheckCaller(const std::string& name, const std::string& grant,
                           ObjectGrants::Use use) const;
  grpc::ServerUnaryReactor* Unary(grpc::CallbackServerContext* context,
                                  std::function<absl::Status()> work);
  TaskThread* NextThread();
  bool InBucket(const std::string& name) const;
  bool IsLinked(const std::string& name) const;
  absl::Status CheckRelayed(const std::string& name) const;  // UNIMPLEMENTED if it is
  // UNIMPLEMENTED unless the object is in the bucket.
  absl::Status CheckInBucket(const std::string& name) const;

  ObjectFiles* const files_;
  const ObjectGrants* const grants_;
  S3Objects* const bucket_;
  LinkedParts* const linked_;
  std::atomic<int> stage_streams_{0}, client_streams_{0}, data_streams_{0};
  std::atomic<uint32_t> next_{0};
  TaskThread even_, odd_;  // a call stays on one
  TaskThread sync_;        // objects that are complete: the others go on meanwhile
  TaskThread data_sync_;   // as sync_, of data sets: their parts may have to be read again
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COORDINATOR_STORE_STORE_SERVICE_H_
