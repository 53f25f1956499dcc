#include "services/common/convert/convert_snapshot.h"

#include <span>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/hash.h"
#include "base/status.h"
#include "base/utf8.h"
#include "services/common/convert/convert_control.h"

namespace stagecoach {

v1::SnapshotPlan ToProto(const SnapshotPlan& plan) {
  v1::SnapshotPlan proto;
  proto.set_key(plan.key);
  proto.set_replica_address(plan.replica_address);
  proto.set_manifest(plan.manifest);
  for (const SnapshotPlan::Holder& holder : plan.holders) {
    v1::SnapshotHolder& target = *proto.add_holders();
    target.set_file(holder.file);
    target.set_address(holder.address);
  }
  return proto;
}

SnapshotPlan FromProto(const v1::SnapshotPlan& proto) {
  SnapshotPlan plan{
      .key = proto.key(), .replica_address = proto.replica_address(), .manifest = proto.manifest()};
  for (const v1::SnapshotHolder& holder : proto.holders()) {
    plan.holders.push_back({holder.file(), holder.address()});
  }
  return plan;
}

v1::SnapshotProgress ToProto(const SnapshotReport& report) {
  v1::SnapshotProgress proto;
  proto.set_busy(report.busy);
  if (report.whole_step.has_value()) proto.set_whole_step(*report.whole_step);
  proto.set_seconds(report.seconds);
  return proto;
}

SnapshotReport FromProto(const v1::SnapshotProgress& proto) {
  SnapshotReport report{.busy = proto.busy(), .seconds = proto.seconds()};
  if (proto.has_whole_step()) report.whole_step = proto.whole_step();
  return report;
}

v1::SnapshotShard ToProto(const HeldShard& shard) {
  v1::SnapshotShard proto;
  proto.set_step(shard.step);
  proto.set_first_layer(shard.first_layer);
  proto.set_last_layer(shard.last_layer);
  proto.set_manifest(shard.manifest);
  v1::WriteShardResponse info = ToProto(shard.info);
  proto.set_file(std::move(*info.mutable_file()));
  proto.set_bytes(info.bytes());
  proto.set_sha256(std::move(*info.mutable_sha256()));
  proto.mutable_tensors()->Swap(info.mutable_tensors());
  return proto;
}

absl::StatusOr<HeldShard> FromProto(const v1::SnapshotShard& proto) {
  v1::WriteShardResponse info;
  info.set_file(proto.file());
  info.set_bytes(proto.bytes());
  info.set_sha256(proto.sha256());
  *info.mutable_tensors() = proto.tensors();
  HeldShard shard{.step = proto.step(),
                  .first_layer = proto.first_layer(),
                  .last_layer = proto.last_layer(),
                  .manifest = proto.manifest()};
  ASSIGN_OR_RETURN(shard.info, FromProto(info));
  const bool named = shard.first_layer >= 0 && shard.last_layer > shard.first_layer &&
                     shard.info.file == ShardFileName(shard.first_layer, shard.last_layer);
  if (named && shard.info.bytes > 0) return shard;
  return absl::InvalidArgumentError(absl::StrCat(
      "a snapshot's shard ", ShownText(shard.info.file), " of ", shard.info.bytes,
      " bytes, layers ", shard.first_layer, " to ", shard.last_layer, ": no such file"));
}

v1::FindSnapshotsResponse ToProto(const std::vector<HeldShard>& held) {
  v1::FindSnapshotsResponse proto;
  for (const HeldShard& shard : held) *proto.add_shards() = ToProto(shard);
  return proto;
}

absl::StatusOr<std::vector<HeldShard>> FromProto(const v1::FindSnapshotsResponse& proto) {
  std::vector<HeldShard> held;
  for (const v1::SnapshotShard& shard : proto.shards()) {
    ASSIGN_OR_RETURN(held.emplace_back(), FromProto(shard));
  }
  return held;
}

// Field by field: a megabyte is not copied for it.
uint32_t HeadCrc(const v1::PutSnapshotPartRequest& request) {
  v1::PutSnapshotPartRequest head;
  *head.mutable_fence() = request.fence();
  head.set_key(request.key());
  head.set_kept(request.kept());
  head.set_kept_of_load(request.kept_of_load());
  *head.mutable_shard() = request.shard();
  head.set_offset(request.offset());
  const std::string bytes = head.SerializeAsString();
  return Crc32c(std::as_bytes(std::span(bytes)));
}

}  // namespace stagecoach
