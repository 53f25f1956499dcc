// Messages of protobuf as peers send them, and what we make of them. The first byte says which.
#include <spdlog/spdlog.h>

#include "plan/job/job_spec.h"
#include "services/common/convert/clean_texts.h"
#include "services/common/convert/convert_control.h"
#include "services/common/convert/network/convert_network.h"
#include "services/common/convert/spec/convert_spec.h"
#include "services/coordinator/convert/convert_job.h"
#include "services/coordinator/http/http_json.h"
#include "tests/fuzz/fuzz_target.h"

namespace stagecoach {
namespace {

template <typename Message>
bool Parse(const std::string& bytes, Message* message) {
  return message->ParseFromString(bytes);
}

void ReadSpecMessage(const std::string& bytes) {
  v1::JobSpec proto;
  if (!Parse(bytes, &proto)) return;
  const absl::StatusOr<JobSpec> spec = FromProto(proto);
  if (!spec.ok()) return;
  const v1::JobSpec written = ToProto(*spec);
  const absl::StatusOr<JobSpec> again = FromProto(written);
  CHECK_OK(again.status());
  CHECK(ToProto(*again).SerializeAsString() == written.SerializeAsString())
      << written.ShortDebugString();
  if (!ExpandValidJob(*spec).ok()) return;
  CHECK_OK(ExpandJob(*spec).status());
}

void ReadNetwork(const std::string& bytes) {
  v1::Network proto;
  if (!Parse(bytes, &proto)) return;
  const absl::StatusOr<Network> network = NetworkFromProto(proto);
  if (!network.ok()) return;
  const v1::Network written = ToProto(*network);
  CHECK_OK(NetworkFromProto(written).status());
}

void ReadCommands(const std::string& bytes, uint8_t which) {
  v1::LoadCellRequest load;
  if (which == 0 && Parse(bytes, &load)) (void)FromProto(load);
  v1::RunRequest run;
  if (which == 1 && Parse(bytes, &run)) {
    const absl::StatusOr<RunCommand> command = FromProto(run);
    if (command.ok()) CHECK_OK(FromProto(ToProto(*command)).status());
  }
  v1::ProfileModelRequest profile;
  if (which == 2 && Parse(bytes, &profile)) (void)FromProto(profile);
}

// What a stage answers, as the coordinator takes it in.
void ReadAnswers(const std::string& bytes, uint8_t which) {
  v1::LoadCellResponse load;
  if (which == 0 && Parse(bytes, &load)) {
    CleanTexts(&load);
    const LoadResult result = FromProto(load);
    CheckShown(result.folder);
    for (const std::string& name : result.facts.classes) CheckShown(name);
  }
  v1::RunResponse run;
  if (which == 1 && Parse(bytes, &run)) {
    CleanTexts(&run);
    for (const Measure& measure : FromProto(run).measures) CheckShown(measure.name);
  }
  v1::WriteShardResponse shard;
  if (which == 2 && Parse(bytes, &shard)) {
    CleanTexts(&shard);
    (void)FromProto(shard);
  }
  v1::GetStageLogsResponse logs;
  if (which == 3 && Parse(bytes, &logs)) {
    CleanTexts(&logs);
    for (const v1::LogLine& line : logs.lines()) CheckShown(line.message());
    CHECK(IsUtf8Text(ToJson(logs))) << "logs over HTTP";
  }
  v1::RegisterStageRequest stage;
  if (which == 4 && Parse(bytes, &stage)) {
    CleanTexts(&stage);
    CheckShown(FromProto(stage.stage()).device);
    const absl::StatusOr<StageDeath> death = FromProto(stage.last_death());
    if (death.ok()) CheckShown(DeathText(*death));
  }
  v1::RenewLeaseRequest renewal;
  if (which == 5 && Parse(bytes, &renewal)) {
    CleanTexts(&renewal);
    for (const NeighbourTotals& neighbour : FromProto(renewal).totals.neighbours) {
      CheckShown(neighbour.peer);
    }
  }
}

}  // namespace

void FuzzMessages(FuzzInput input) {
  google::protobuf::LogSilencer silence;  // of texts that are no UTF-8
  const uint8_t which = input.Byte();
  const std::string bytes = input.Rest();
  if (which % 16 == 0) return ReadSpecMessage(bytes);
  if (which % 16 == 1) return ReadNetwork(bytes);
  if (which % 16 < 5) return ReadCommands(bytes, which % 16 - 2);
  ReadAnswers(bytes, which % 16 - 5);
}

}  // namespace stagecoach

FUZZ_TARGET(messages, FuzzMessages)
