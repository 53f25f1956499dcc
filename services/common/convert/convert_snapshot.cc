#include "services/common/convert/convert_snapshot.h"

#include <span>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "base/files/hash.h"
#include "base/utf8.h"
#include "services/common/convert/convert_control.h"
#include "services/common/convert/fields/message_fields.h"

namespace stagecoach {

static void VisitFields(MessageVisitor& visit, SnapshotPlan::Holder& holder) {
  visit.Field("file", holder.file);
  visit.Field("address", holder.address);
}

void VisitFields(MessageVisitor& visit, SnapshotPlan& plan) {
  visit.Field("key", plan.key);
  visit.Field("replica_address", plan.replica_address);
  visit.Field("manifest", plan.manifest);
  visit.Field("holders", plan.holders);
}

void VisitFields(MessageVisitor& visit, SnapshotReport& report) {
  visit.Field("busy", report.busy);
  visit.Field("whole_step", report.whole_step);
  visit.Field("seconds", report.seconds);
}

static void VisitFields(MessageVisitor& visit, HeldShard& shard) {
  visit.Field("step", shard.step);
  visit.Field("layers", shard.layers);
  visit.Field("manifest", shard.manifest);
  VisitFields(visit, shard.info);
}

static bool HasLayers(const ShardLayers& layers) {
  int last = 0;
  for (const LayerRange& cell : layers) {
    if (cell.first < last || cell.last <= cell.first) return false;
    last = cell.last;
  }
  return !layers.empty();
}

v1::SnapshotShard ToProto(const HeldShard& shard) {
  auto proto = MessageOf<v1::SnapshotShard>(shard);
  WriteTensors(shard.info.tensors, proto.mutable_tensors());
  return proto;
}

absl::StatusOr<HeldShard> FromProto(const v1::SnapshotShard& proto) {
  auto shard = ValueOf<HeldShard>(proto);
  ASSIGN_OR_RETURN(shard.info.tensors, ReadTensors(proto.tensors()));
  if (HasLayers(shard.layers) && shard.info.file == ShardFileName(shard.layers) &&
      shard.info.bytes > 0) {
    return shard;
  }
  return absl::InvalidArgumentError(absl::StrCat("a snapshot's shard ", ShownText(shard.info.file),
                                                 " of ", shard.info.bytes, " bytes, ",
                                                 shard.layers.size(),
                                                 " ranges of layers: no such file"));
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
