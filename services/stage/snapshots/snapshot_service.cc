#include "services/stage/snapshots/snapshot_service.h"

#include <functional>
#include <span>

#include "absl/strings/str_cat.h"
#include "base/files/hash.h"
#include "services/common/convert/convert_control.h"
#include "services/common/convert/convert_snapshot.h"
#include "services/common/grpc/grpc_status.h"

namespace stagecoach {
namespace {

absl::StatusOr<SnapshotPart> PartFromProto(const v1::PutSnapshotPartRequest& request) {
  SnapshotPart part{.fence = FromProto(request.fence()),
                    .key = request.key(),
                    .kept = request.kept(),
                    .kept_of_load = request.kept_of_load(),
                    .offset = request.offset(),
                    .bytes = std::as_bytes(std::span(request.data()))};
  if (Crc32c(part.bytes, HeadCrc(request)) != request.crc32c()) {
    return absl::DataLossError(absl::StrCat("a part of a snapshot at byte ", part.offset,
                                            " was changed on its way (", part.fence.ToString(),
                                            ")"));
  }
  if (part.offset == 0) {
    ASSIGN_OR_RETURN(part.shard, FromProto(request.shard()));
  } else {
    part.shard.info.file = request.shard().file();
  }
  return part;
}

}  // namespace

void SnapshotServiceAdapter::Serve(RpcLoop* loop) {
  using Service = v1::SnapshotService::AsyncService;
  ServeUnary(loop, &service_, &Service::RequestPutSnapshotPart,
             std::bind_front(&SnapshotServiceAdapter::PutPart, this));
  ServeUnary(loop, &service_, &Service::RequestGetSnapshotPart,
             std::bind_front(&SnapshotServiceAdapter::GetPart, this));
}

void SnapshotServiceAdapter::PutPart(const v1::PutSnapshotPartRequest& request,
                                     v1::PutSnapshotPartResponse*, Answer answer) {
  const absl::StatusOr<SnapshotPart> part = PartFromProto(request);
  answer(ToGrpc(part.ok() ? runtime_->PutSnapshot(*part) : part.status()));
}

void SnapshotServiceAdapter::GetPart(const v1::GetSnapshotPartRequest& request,
                                     v1::GetSnapshotPartResponse* response, Answer answer) {
  if (request.bytes() < 0 || request.bytes() > kSnapshotPartBytes) {
    return answer(ToGrpc(absl::InvalidArgumentError(
        absl::StrCat("bytes: ", request.bytes(), ", want 0 to ", kSnapshotPartBytes))));
  }
  std::string& data = *response->mutable_data();
  data.resize(static_cast<size_t>(request.bytes()));
  const std::span<std::byte> target = std::as_writable_bytes(std::span(data));
  const absl::Status status = runtime_->ReadSnapshot({.job = request.job_id(),
                                                      .key = request.key(),
                                                      .step = request.step(),
                                                      .file = request.file(),
                                                      .offset = request.offset()},
                                                     target);
  if (status.ok()) response->set_crc32c(Crc32c(target));
  answer(ToGrpc(status));
}

}  // namespace stagecoach
