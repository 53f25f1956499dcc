// Conversion of snapshots in memory: stage.proto and plan/control.h, checkpoint/snapshot.h.
// Errors: INVALID_ARGUMENT for anything but a shard of a snapshot.
#ifndef STAGECOACH_SERVICES_COMMON_CONVERT_CONVERT_SNAPSHOT_H_
#define STAGECOACH_SERVICES_COMMON_CONVERT_CONVERT_SNAPSHOT_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "checkpoint/snapshot.h"
#include "plan/control.h"
#include "services/common/convert/fields/message_fields.h"
#include "stagecoach/v1/snapshot.pb.h"
#include "stagecoach/v1/stage.pb.h"

namespace stagecoach {

// For messages inside those of convert_control.h.
void VisitFields(MessageVisitor& visit, SnapshotPlan& plan);
void VisitFields(MessageVisitor& visit, SnapshotReport& report);

v1::SnapshotShard ToProto(const HeldShard& shard);
absl::StatusOr<HeldShard> FromProto(const v1::SnapshotShard& proto);

v1::FindSnapshotsResponse ToProto(const std::vector<HeldShard>& held);
absl::StatusOr<std::vector<HeldShard>> FromProto(const v1::FindSnapshotsResponse& proto);

// CRC of the message without its data and without a sum.
uint32_t HeadCrc(const v1::PutSnapshotPartRequest& request);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_CONVERT_CONVERT_SNAPSHOT_H_
