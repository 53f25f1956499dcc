// SnapshotServiceAdapter: SnapshotService over StageRuntime: other stages store and fetch parts of
// their shards here.
// Ownership: borrows the runtime.
// Threads:   calls on the loop's thread, answered at once.
// Errors:    as SnapshotStore; DATA_LOSS for a part that was damaged on the way; INVALID_ARGUMENT.
#ifndef STAGECOACH_SERVICES_STAGE_SNAPSHOTS_SNAPSHOT_SERVICE_H_
#define STAGECOACH_SERVICES_STAGE_SNAPSHOTS_SNAPSHOT_SERVICE_H_

#include <grpcpp/grpcpp.h>

#include "services/stage/snapshots/unary_call.h"
#include "stage/runtime/stage_runtime.h"
#include "stagecoach/v1/snapshot.grpc.pb.h"

namespace stagecoach {

class SnapshotServiceAdapter final {
 public:
  explicit SnapshotServiceAdapter(StageRuntime* runtime) : runtime_(runtime) {}

  // Register it with a server. Once that has started, serve it on the loop that polls the server's
  // queue.
  grpc::Service* service() { return &service_; }
  void Serve(RpcLoop* loop);

 private:
  void PutPart(const v1::PutSnapshotPartRequest& request, v1::PutSnapshotPartResponse* response,
               Answer answer);
  void GetPart(const v1::GetSnapshotPartRequest& request, v1::GetSnapshotPartResponse* response,
               Answer answer);

  StageRuntime* const runtime_;
  v1::SnapshotService::AsyncService service_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_STAGE_SNAPSHOTS_SNAPSHOT_SERVICE_H_
