#include "services/common/convert/convert_control.h"

#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "base/utf8.h"
#include "services/common/convert/convert_snapshot.h"
#include "services/common/convert/fields/known_fields.h"
#include "services/common/convert/fields/message_fields.h"
#include "services/common/convert/network/convert_network.h"
#include "services/common/convert/spec/convert_spec.h"

namespace stagecoach {

// One list of fields a message; what a list cannot say stands in the conversion.
static void VisitFields(MessageVisitor& visit, DatasetManifest& data) {
  visit.Field("bytes", data.bytes);
  visit.Field("sha256", data.sha256);
  visit.Field("train_samples", data.train_samples);
  visit.Field("evaluation_samples", data.evaluation_samples);
}

static void VisitFields(MessageVisitor& visit, DataFacts& facts) {
  visit.Field("classes", facts.classes);
  visit.Field("mean", facts.mean);
  visit.Field("deviation", facts.deviation);
}

static void VisitFields(MessageVisitor& visit, WeightsRead::Tensor& tensor) {
  visit.Field("name", tensor.name);
  visit.Field("dtype", tensor.dtype);
  visit.Field("shape", tensor.shape);
  visit.Field("sha256", tensor.sha256);
}

static void VisitFields(MessageVisitor& visit, WeightsRead& weights) {
  visit.Field("bytes", weights.bytes);
  visit.Field("header_sha256", weights.header_sha256);
  visit.Field("tensors", weights.tensors);
  visit.Field("named_sha256", weights.named_sha256);
  visit.Field("read", weights.read);
}

void VisitFields(MessageVisitor& visit, Fence& fence) {
  visit.Field("job", fence.job);
  visit.Field("term", fence.term);
  visit.Field("generation", fence.generation);
  visit.Field("step", fence.step);
  visit.Field("attempt", fence.attempt);
}

void VisitFields(MessageVisitor& visit, StageMemory& memory) {
  visit.Field("parameters", memory.parameters);
  visit.Field("gradients", memory.gradients);
  visit.Field("optimizer", memory.optimizer);
  visit.Field("activations", memory.activations);
}

static void VisitFields(MessageVisitor& visit, StageDeath& death) {
  visit.Field("signal", death.signal);
  visit.Field("fence", death.fence);
  visit.Field("micro_batch", death.micro_batch);
  visit.Field("instruction", death.instruction);
  visit.Field("operation", death.operation);
}

static void VisitFields(MessageVisitor& visit, CellNeighbours& neighbours) {
  visit.Field("downstream_address", neighbours.downstream_address);
  visit.Field("upstream_name", neighbours.upstream_name);
}

static void VisitFields(MessageVisitor& visit, LoadCommand& command) {
  visit.Field("fence", command.fence);
  visit.Field("stage", command.stage);
  visit.Field("placement", command.partition.placement);
  visit.Field("neighbours", command.neighbours);
  visit.Field("checkpoint_folder", command.checkpoint_folder);
  visit.Field("fresh_optimizer", command.fresh_optimizer);
  visit.Field("expected_data", command.expected_data);
  visit.Field("probe_folder", command.probe_folder);
  visit.UnlessDefault("snapshot", command.snapshot);
}

static void VisitFields(MessageVisitor& visit, LoadResult& result) {
  visit.Field("data", result.data);
  visit.UnlessDefault("facts", result.facts);
  visit.UnlessDefault("weights", result.weights);
  visit.Field("fingerprint", result.fingerprint);
  visit.Field("memory", result.memory);
  visit.Field("folder_answered", result.folder_answered);
  visit.Field("snapshots", result.snapshots);
  visit.Field("data_notes", result.data_notes);
}

static void VisitFields(MessageVisitor& visit, ApplyDecision& decision) {
  visit.Field("step", decision.step);
  visit.Field("apply", decision.apply);
  visit.Field("learning_rate", decision.learning_rate);
  visit.Field("gradient_scale", decision.gradient_scale);
  visit.Field("optimizer_steps", decision.optimizer_steps);
}

static void VisitFields(MessageVisitor& visit, RunCommand& command) {
  visit.Field("fence", command.fence);
  visit.Field("apply", command.apply);
  visit.Choice("work", command.work, {"", "train", "evaluate", "translate", "write"});
  visit.Field("evaluation_batch", command.evaluation_batch);
  visit.Field("average", command.average);
  visit.Field("snapshot", command.snapshot);
  visit.Field("snapshot_kept", command.snapshot_kept);
  visit.Field("snapshot_of_load", command.snapshot_of_load);
  visit.Field("snapshots_end", command.snapshots_end);
  visit.Field("copy_shard", command.copy_shard);
  visit.Field("rounds", command.rounds);
  visit.Field("goes_on", command.goes_on);
}

static void VisitFields(MessageVisitor& visit, Measure& measure) {
  visit.Field("name", measure.name);
  visit.Field("sum", measure.value);
}

static void VisitFields(MessageVisitor& visit, ShownAnswer& answer) {
  visit.Field("label", answer.label);
  visit.Field("answer", answer.answer);
  visit.Field("probability", answer.probability);
}

static void VisitFields(MessageVisitor& visit, ShownTranslation& shown) {
  visit.Field("number", shown.number);
  visit.Field("source", shown.source);
  visit.Field("reference", shown.reference);
  visit.Field("translation", shown.translation);
}

void VisitFields(MessageVisitor& visit, WrittenPiece& written) {
  visit.Field("line", written.line);
  visit.Field("offset", written.offset);
  visit.Field("text", written.text);
  visit.Field("done", written.done);
  visit.Field("tokens", written.tokens);
  visit.Field("score", written.score);
  visit.Field("ended", written.ended);
}

static void VisitFields(MessageVisitor& visit, StepReport& report) {
  visit.Field("fence", report.fence);
  visit.Field("applied", report.applied);
  visit.Field("targets", report.targets);
  visit.Field("positions", report.padding.positions);
  visit.Field("padded", report.padding.padded);
  visit.Field("measures", report.measures);
  visit.Field("shown_answers", report.shown);
  visit.Field("translation_counts", report.translation_counts);
  visit.Field("shown_translations", report.shown_translations);
  visit.Field("written", report.written);
  visit.Field("write_over", report.write_over);
  visit.Field("layer_squared_norms", report.layer_squared_norms);
  visit.Field("finite", report.finite);
  visit.Field("step_seconds", report.step_seconds);
  visit.Field("memory_peak", report.memory_peak);
  visit.UnlessDefault("snapshot", report.snapshot);
  visit.Field("shard_copied", report.shard_copied);
}

static void VisitFields(MessageVisitor& visit, WriteShardCommand& command) {
  visit.Field("fence", command.fence);
  visit.Field("folder", command.folder);
  visit.Field("snapshot_files", command.snapshot_files);
  visit.Field("snapshot_key", command.snapshot_key);
}

static void VisitFields(MessageVisitor& visit, ShardTensor& tensor) {
  visit.Field("name", tensor.entry.name);
  visit.Field("begin", tensor.entry.begin);
  visit.Field("end", tensor.entry.end);
  visit.Field("sha256", tensor.sha256);
}

static void VisitFields(MessageVisitor& visit, LayerProfile& layer) {
  visit.Field("forward_seconds", layer.forward_seconds);
  visit.Field("backward_seconds", layer.backward_seconds);
}

namespace {

// Every cell has a stage, and every stage up to the last one has a cell.
absl::Status CheckPlacement(const Partition& partition) {
  if (partition.placement.empty()) return absl::OkStatus();
  const int cells = partition.cells();
  if (std::ssize(partition.placement) != cells) {
    return absl::InvalidArgumentError(absl::StrCat(
        "placement has ", partition.placement.size(), " entries for ", cells, " cells"));
  }
  std::set<int> stages;
  for (const int stage : partition.placement) {
    if (stage < 0 || stage >= cells) {
      return absl::InvalidArgumentError(
          absl::StrCat("placement: ", stage, ": want 0 to ", cells - 1));
    }
    stages.insert(stage);
  }
  if (*stages.rbegin() + 1 == std::ssize(stages)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("placement: a stage before stage ", *stages.rbegin(), " has no cell"));
}

// First layers strictly ascending from 0: the partition is indexed with them unchecked later.
absl::StatusOr<Partition> PlannedPartitionFromProto(const v1::LoadCellRequest& proto) {
  Partition partition;
  int64_t previous = -1;
  for (int i = 0; i < proto.first_layers_size(); ++i) {
    const int64_t first = proto.first_layers(i);
    if ((i == 0 && first != 0) || first <= previous || first > std::numeric_limits<int>::max()) {
      return absl::InvalidArgumentError(
          absl::StrCat("first_layers[", i, "]=", first, ": want 0 first, then ascending"));
    }
    previous = first;
    partition.first_layers.push_back(static_cast<int>(first));
  }
  if (partition.first_layers.empty()) {
    return absl::InvalidArgumentError("first_layers: empty, want one entry a cell");
  }
  partition.placement.assign(proto.placement().begin(), proto.placement().end());
  RETURN_IF_ERROR(CheckPlacement(partition));
  return partition;
}

// What it says of the job beside the model goes into what is computed as well.
template <typename Request>
absl::StatusOr<JobSpec> JobFromProto(const Request& request) {
  absl::Status known = CheckAllKnown(request, "request", "job");
  known.Update(CheckAllKnown(request.job(), "job", "model"));
  if (!known.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(known.message(), "; upgrade this stage server to the coordinator's version"));
  }
  return Annotate(JobBesideItsNetwork(request.job()), "job");
}

template <typename Request>
absl::Status CheckHasNetwork(const Request& proto) {
  if (proto.has_network()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "network: not given; upgrade the coordinator to the version of its stage servers");
}

template <typename Request>
absl::StatusOr<std::shared_ptr<const Network>> SharedNetworkFromProto(const Request& proto) {
  ASSIGN_OR_RETURN(Network network, NetworkFromProto(proto.network()));
  return std::make_shared<const Network>(std::move(network));
}

}  // namespace

v1::Fence ToProto(const Fence& fence) { return MessageOf<v1::Fence>(fence); }
Fence FromProto(const v1::Fence& proto) { return ValueOf<Fence>(proto); }

v1::StageDeath ToProto(const StageDeath& death) { return MessageOf<v1::StageDeath>(death); }

absl::StatusOr<StageDeath> FromProto(const v1::StageDeath& proto) {
  for (const auto& [field, text] :
       {std::pair("signal", &proto.signal()), std::pair("instruction", &proto.instruction()),
        std::pair("operation", &proto.operation())}) {
    constexpr size_t kMostCharacters = 63;
    if (text->size() <= kMostCharacters) continue;
    return absl::InvalidArgumentError(absl::StrCat("last_death.", field, " has ", text->size(),
                                                   " characters; give at most ", kMostCharacters));
  }
  return ValueOf<StageDeath>(proto);
}

v1::PhaseTimes ToProto(const PhaseSeconds& phases) {
  v1::PhaseTimes proto;
  for (int i = 0; i < kPhases; ++i) {
    (*proto.mutable_seconds())[PhaseName(static_cast<Phase>(i))] = phases.seconds[i];
  }
  return proto;
}

PhaseSeconds FromProto(const v1::PhaseTimes& proto) {
  PhaseSeconds phases;
  for (int i = 0; i < kPhases; ++i) {
    const auto it = proto.seconds().find(PhaseName(static_cast<Phase>(i)));
    if (it != proto.seconds().end()) phases.seconds[i] = it->second;
  }
  return phases;
}

v1::MemoryBytes ToProto(const StageMemory& memory) { return MessageOf<v1::MemoryBytes>(memory); }
StageMemory FromProto(const v1::MemoryBytes& proto) { return ValueOf<StageMemory>(proto); }

v1::LoadCellRequest ToProto(const LoadCommand& command) {
  return ToProto(command, ToProto(*command.network));
}

v1::LoadCellRequest ToProto(const LoadCommand& command, const v1::Network& network) {
  auto proto = MessageOf<v1::LoadCellRequest>(command);
  *proto.mutable_job() = ToProto(command.spec);
  *proto.mutable_network() = network;
  for (int first : command.partition.first_layers) proto.add_first_layers(first);
  return proto;
}

absl::StatusOr<LoadCommand> FromProto(const v1::LoadCellRequest& proto) {
  RETURN_IF_ERROR(CheckHasNetwork(proto));
  auto command = ValueOf<LoadCommand>(proto);
  ASSIGN_OR_RETURN(command.spec, JobFromProto(proto));
  ASSIGN_OR_RETURN(command.partition, PlannedPartitionFromProto(proto));
  if (proto.stage() < 0 || proto.stage() >= command.partition.stages()) {
    return absl::InvalidArgumentError(
        absl::StrCat("stage=", proto.stage(), ": want 0 to ", command.partition.stages() - 1));
  }
  const size_t cells = command.partition.CellsOfStage(proto.stage()).size();
  if (command.neighbours.size() != cells) {
    return absl::InvalidArgumentError(absl::StrCat("neighbours: ", command.neighbours.size(),
                                                   " entries for ", cells,
                                                   " cells of stage ", proto.stage()));
  }
  ASSIGN_OR_RETURN(command.network, SharedNetworkFromProto(proto));
  return command;
}

v1::LoadCellResponse ToProto(const LoadResult& result) {
  auto proto = MessageOf<v1::LoadCellResponse>(result);
  if (result.shown != nullptr) {
    for (const std::string& file : *result.shown) proto.add_shown_pictures(file);
  }
  for (std::string& note : *proto.mutable_data_notes()) note = ShownText(note);
  if (!result.folder.ok()) {
    proto.mutable_folder_fault()->set_code(static_cast<int>(result.folder.code()));
    proto.mutable_folder_fault()->set_message(ShownText(std::string(result.folder.message())));
  }
  return proto;
}

LoadResult FromProto(const v1::LoadCellResponse& proto) {
  const v1::FolderFault& fault = proto.folder_fault();
  auto result = ValueOf<LoadResult>(proto);
  if (proto.shown_pictures_size() > 0) {
    result.shown = std::make_shared<const std::vector<std::string>>(proto.shown_pictures().begin(),
                                                                    proto.shown_pictures().end());
  }
  result.folder = absl::Status(static_cast<absl::StatusCode>(fault.code()), fault.message());
  return result;
}

v1::ShownTranslation ToProto(const ShownTranslation& shown) {
  return MessageOf<v1::ShownTranslation>(shown);
}

v1::WrittenPiece ToProto(const WrittenPiece& written) {
  return MessageOf<v1::WrittenPiece>(written);
}
WrittenPiece FromProto(const v1::WrittenPiece& proto) { return ValueOf<WrittenPiece>(proto); }

v1::RunRequest ToProto(const RunCommand& command) { return MessageOf<v1::RunRequest>(command); }

absl::StatusOr<RunCommand> FromProto(const v1::RunRequest& proto) {
  RunCommand command;
  RETURN_IF_ERROR(ReadMessage(proto, &command));
  return command;
}

v1::RunResponse ToProto(const StepReport& report) {
  auto proto = MessageOf<v1::RunResponse>(report);
  if (report.has_loss) proto.set_loss_sum(report.loss_sum);
  if (report.has_loss) proto.set_terms(report.terms);
  for (const ClassCounts& counts : report.class_counts) {
    for (const double count : {counts.right, counts.targets, counts.guesses}) {
      proto.add_class_counts(count);
    }
  }
  *proto.mutable_phases() = ToProto(report.phases);
  return proto;
}

StepReport FromProto(const v1::RunResponse& proto) {
  auto report = ValueOf<StepReport>(proto);
  report.has_loss = proto.has_loss_sum();
  report.loss_sum = proto.loss_sum();
  report.terms = proto.has_terms() ? proto.terms() : static_cast<double>(proto.targets());
  for (int i = 0; i + 2 < proto.class_counts_size(); i += 3) {
    report.class_counts.push_back(
        {proto.class_counts(i), proto.class_counts(i + 1), proto.class_counts(i + 2)});
  }
  report.phases = FromProto(proto.phases());
  return report;
}

v1::WriteShardRequest ToProto(const WriteShardCommand& command) {
  return MessageOf<v1::WriteShardRequest>(command);
}
WriteShardCommand FromProto(const v1::WriteShardRequest& proto) {
  return ValueOf<WriteShardCommand>(proto);
}

void WriteTensors(const std::vector<ShardTensor>& tensors, ShardTensors* list) {
  for (const ShardTensor& tensor : tensors) {
    v1::ShardTensor& proto = *list->Add();
    WriteMessage(tensor, &proto);
    proto.set_dtype(DTypeName(tensor.entry.dtype));
    const std::vector<int64_t>& extents = tensor.entry.shape.extents();
    proto.mutable_shape()->Add(extents.begin(), extents.end());
  }
}

absl::StatusOr<std::vector<ShardTensor>> ReadTensors(const ShardTensors& list) {
  std::vector<ShardTensor> tensors;
  for (const v1::ShardTensor& proto : list) {
    auto& tensor = tensors.emplace_back(ValueOf<ShardTensor>(proto));
    ASSIGN_OR_RETURN(tensor.entry.dtype, ParseDType(proto.dtype()));
    std::vector<int64_t> extents(proto.shape().begin(), proto.shape().end());
    RETURN_IF_ERROR(CheckedElements(extents).status());
    tensor.entry.shape = Shape(std::move(extents));
  }
  return tensors;
}

void VisitFields(MessageVisitor& visit, ShardInfo& shard) {
  visit.Field("file", shard.file);
  visit.Field("bytes", shard.bytes);
  visit.Field("sha256", shard.sha256);
}

v1::WriteShardResponse ToProto(const ShardInfo& shard) {
  auto proto = MessageOf<v1::WriteShardResponse>(shard);
  WriteTensors(shard.tensors, proto.mutable_tensors());
  return proto;
}

absl::StatusOr<ShardInfo> FromProto(const v1::WriteShardResponse& proto) {
  auto shard = ValueOf<ShardInfo>(proto);
  ASSIGN_OR_RETURN(shard.tensors, ReadTensors(proto.tensors()));
  return shard;
}

v1::ProfileModelRequest ToProto(const ProfileCommand& command) {
  v1::ProfileModelRequest proto;
  *proto.mutable_job() = ToProto(command.spec);
  *proto.mutable_network() = ToProto(*command.network);
  return proto;
}

absl::StatusOr<ProfileCommand> FromProto(const v1::ProfileModelRequest& proto) {
  ProfileCommand command;
  RETURN_IF_ERROR(CheckHasNetwork(proto));
  ASSIGN_OR_RETURN(command.spec, JobFromProto(proto));
  ASSIGN_OR_RETURN(command.network, SharedNetworkFromProto(proto));
  return command;
}

v1::ProfileModelResponse ToProto(const std::vector<LayerProfile>& profile) {
  v1::ProfileModelResponse proto;
  for (const LayerProfile& layer : profile) WriteMessage(layer, proto.add_layers());
  return proto;
}

std::vector<LayerProfile> FromProto(const v1::ProfileModelResponse& proto) {
  std::vector<LayerProfile> profile;
  for (const v1::LayerTimes& layer : proto.layers()) {
    profile.push_back(ValueOf<LayerProfile>(layer));
  }
  return profile;
}

}  // namespace stagecoach
