// Conversion of control values between proto/stagecoach/v1/{stage,fleet}.proto and plan/control.h,
// checkpoint/shard.h. The stage's adapter and the coordinator's client share it.
// Errors: INVALID_ARGUMENT with the field path for values that the domain cannot hold. A command to
//         load or to measure is refused if it has a field unknown to this version: the computation
//         would ignore it.
#ifndef STAGECOACH_SERVICES_COMMON_CONVERT_CONVERT_CONTROL_H_
#define STAGECOACH_SERVICES_COMMON_CONVERT_CONVERT_CONTROL_H_

#include <vector>

#include "absl/status/statusor.h"
#include "checkpoint/shard.h"
#include "plan/control.h"
#include "plan/stage_death.h"
#include "services/common/convert/fields/message_fields.h"
#include "stagecoach/v1/fleet.pb.h"
#include "stagecoach/v1/stage.pb.h"

namespace stagecoach {

v1::Fence ToProto(const Fence& fence);
Fence FromProto(const v1::Fence& proto);

v1::StageDeath ToProto(const StageDeath& death);
absl::StatusOr<StageDeath> FromProto(const v1::StageDeath& proto);

v1::PhaseTimes ToProto(const PhaseSeconds& phases);
PhaseSeconds FromProto(const v1::PhaseTimes& proto);  // unknown phases are dropped

v1::MemoryBytes ToProto(const StageMemory& memory);
StageMemory FromProto(const v1::MemoryBytes& proto);

v1::LoadCellRequest ToProto(const LoadCommand& command);
// With the network as a message already: all stages of a job get the same.
v1::LoadCellRequest ToProto(const LoadCommand& command, const v1::Network& network);
absl::StatusOr<LoadCommand> FromProto(const v1::LoadCellRequest& proto);

v1::LoadCellResponse ToProto(const LoadResult& result);
LoadResult FromProto(const v1::LoadCellResponse& proto);

v1::ShownTranslation ToProto(const ShownTranslation& shown);
v1::WrittenPiece ToProto(const WrittenPiece& written);
WrittenPiece FromProto(const v1::WrittenPiece& proto);

v1::RunRequest ToProto(const RunCommand& command);
absl::StatusOr<RunCommand> FromProto(const v1::RunRequest& proto);

v1::RunResponse ToProto(const StepReport& report);
StepReport FromProto(const v1::RunResponse& proto);

v1::WriteShardRequest ToProto(const WriteShardCommand& command);
WriteShardCommand FromProto(const v1::WriteShardRequest& proto);

v1::WriteShardResponse ToProto(const ShardInfo& shard);
absl::StatusOr<ShardInfo> FromProto(const v1::WriteShardResponse& proto);

v1::ProfileModelRequest ToProto(const ProfileCommand& command);
absl::StatusOr<ProfileCommand> FromProto(const v1::ProfileModelRequest& proto);

v1::ProfileModelResponse ToProto(const std::vector<LayerProfile>& profile);
std::vector<LayerProfile> FromProto(const v1::ProfileModelResponse& proto);

// For messages that have these structs, or their fields.
void VisitFields(MessageVisitor& visit, Fence& fence);
void VisitFields(MessageVisitor& visit, StageMemory& memory);
void VisitFields(MessageVisitor& visit, ShardInfo& shard);  // without its tensors
using ShardTensors = google::protobuf::RepeatedPtrField<v1::ShardTensor>;
void WriteTensors(const std::vector<ShardTensor>& tensors, ShardTensors* list);
absl::StatusOr<std::vector<ShardTensor>> ReadTensors(const ShardTensors& list);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_CONVERT_CONVERT_CONTROL_H_
