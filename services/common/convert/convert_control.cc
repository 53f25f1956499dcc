#include "services/common/convert/convert_control.h"

#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/utf8.h"
#include "services/common/convert/convert_network.h"
#include "services/common/convert/convert_snapshot.h"
#include "services/common/convert/convert_spec.h"
#include "services/common/convert/known_fields.h"

namespace stagecoach {
namespace {

v1::DatasetManifest ManifestToProto(const DatasetManifest& data) {
  v1::DatasetManifest proto;
  proto.set_bytes(data.bytes);
  proto.set_sha256(data.sha256);
  proto.set_train_samples(data.train_samples);
  proto.set_evaluation_samples(data.evaluation_samples);
  return proto;
}

DatasetManifest ManifestFromProto(const v1::DatasetManifest& proto) {
  return {proto.bytes(), proto.sha256(), proto.train_samples(), proto.evaluation_samples()};
}

v1::DataFacts FactsToProto(const DataFacts& facts) {
  v1::DataFacts proto;
  for (const std::string& name : facts.classes) proto.add_classes(name);
  proto.mutable_mean()->Add(facts.mean.begin(), facts.mean.end());
  proto.mutable_deviation()->Add(facts.deviation.begin(), facts.deviation.end());
  return proto;
}

DataFacts FactsFromProto(const v1::DataFacts& proto) {
  return {.classes = {proto.classes().begin(), proto.classes().end()},
          .mean = {proto.mean().begin(), proto.mean().end()},
          .deviation = {proto.deviation().begin(), proto.deviation().end()}};
}

v1::WeightsManifest ManifestToProto(const WeightsManifest& weights) {
  v1::WeightsManifest proto;
  proto.set_bytes(weights.bytes);
  proto.set_sha256(weights.sha256);
  return proto;
}

WeightsManifest ManifestFromProto(const v1::WeightsManifest& proto) {
  return {proto.bytes(), proto.sha256()};
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
    return absl::InvalidArgumentError("first_layers: empty, want one entry a stage");
  }
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

v1::Fence ToProto(const Fence& fence) {
  v1::Fence proto;
  proto.set_job(fence.job);
  proto.set_term(fence.term);
  proto.set_generation(fence.generation);
  proto.set_step(fence.step);
  proto.set_attempt(fence.attempt);
  return proto;
}

Fence FromProto(const v1::Fence& proto) {
  return {proto.job(), proto.term(), proto.generation(), proto.step(), proto.attempt()};
}

v1::StageDeath ToProto(const StageDeath& death) {
  v1::StageDeath proto;
  proto.set_signal(death.signal);
  *proto.mutable_fence() = ToProto(death.fence);
  if (death.micro_batch.valid()) proto.set_micro_batch(death.micro_batch.value);
  proto.set_instruction(death.instruction);
  proto.set_operation(death.operation);
  return proto;
}

absl::StatusOr<StageDeath> FromProto(const v1::StageDeath& proto) {
  for (const auto& [field, text] :
       {std::pair("signal", &proto.signal()), std::pair("instruction", &proto.instruction()),
        std::pair("operation", &proto.operation())}) {
    constexpr size_t kMostCharacters = 63;
    if (text->size() <= kMostCharacters) continue;
    return absl::InvalidArgumentError(absl::StrCat("last_death.", field, " has ", text->size(),
                                                   " characters; give at most ", kMostCharacters));
  }
  return StageDeath{
      .signal = proto.signal(),
      .fence = FromProto(proto.fence()),
      .micro_batch = proto.has_micro_batch() ? MicroBatchId(proto.micro_batch()) : MicroBatchId(),
      .instruction = proto.instruction(),
      .operation = proto.operation()};
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

v1::MemoryBytes ToProto(const StageMemory& memory) {
  v1::MemoryBytes proto;
  proto.set_parameters(memory.parameters);
  proto.set_gradients(memory.gradients);
  proto.set_optimizer(memory.optimizer);
  proto.set_activations(memory.activations);
  return proto;
}

StageMemory FromProto(const v1::MemoryBytes& proto) {
  return {proto.parameters(), proto.gradients(), proto.optimizer(), proto.activations()};
}

v1::LoadCellRequest ToProto(const LoadCommand& command) {
  return ToProto(command, ToProto(*command.network));
}

v1::LoadCellRequest ToProto(const LoadCommand& command, const v1::Network& network) {
  v1::LoadCellRequest proto;
  *proto.mutable_fence() = ToProto(command.fence);
  *proto.mutable_job() = ToProto(command.spec);
  *proto.mutable_network() = network;
  for (int first : command.partition.first_layers) proto.add_first_layers(first);
  proto.set_stage(command.stage.value);
  proto.set_downstream_address(command.downstream_address);
  proto.set_upstream_name(command.upstream_name);
  proto.set_checkpoint_folder(command.checkpoint_folder);
  proto.set_fresh_optimizer(command.fresh_optimizer);
  *proto.mutable_expected_data() = ManifestToProto(command.expected_data);
  *proto.mutable_expected_weights() = ManifestToProto(command.expected_weights);
  proto.set_probe_folder(command.probe_folder);
  if (command.snapshot != SnapshotPlan()) {
    *proto.mutable_snapshot() = ToProto(command.snapshot);
  }
  return proto;
}

absl::StatusOr<LoadCommand> FromProto(const v1::LoadCellRequest& proto) {
  LoadCommand command;
  RETURN_IF_ERROR(CheckHasNetwork(proto));
  command.fence = FromProto(proto.fence());
  ASSIGN_OR_RETURN(command.spec, JobFromProto(proto));
  ASSIGN_OR_RETURN(command.partition, PlannedPartitionFromProto(proto));
  if (proto.stage() < 0 || proto.stage() >= command.partition.stages()) {
    return absl::InvalidArgumentError(
        absl::StrCat("stage=", proto.stage(), ": want 0 to ", command.partition.stages() - 1));
  }
  command.stage = StageId(proto.stage());
  command.downstream_address = proto.downstream_address();
  command.upstream_name = proto.upstream_name();
  command.checkpoint_folder = proto.checkpoint_folder();
  command.fresh_optimizer = proto.fresh_optimizer();
  command.expected_data = ManifestFromProto(proto.expected_data());
  command.expected_weights = ManifestFromProto(proto.expected_weights());
  command.probe_folder = proto.probe_folder();
  command.snapshot = FromProto(proto.snapshot());
  ASSIGN_OR_RETURN(command.network, SharedNetworkFromProto(proto));
  return command;
}

v1::LoadCellResponse ToProto(const LoadResult& result) {
  v1::LoadCellResponse proto;
  *proto.mutable_data() = ManifestToProto(result.data);
  if (!result.facts.empty()) *proto.mutable_facts() = FactsToProto(result.facts);
  if (result.shown != nullptr) {
    for (const std::string& file : *result.shown) proto.add_shown_pictures(file);
  }
  *proto.mutable_weights() = ManifestToProto(result.weights);
  proto.set_fingerprint(result.fingerprint);
  *proto.mutable_memory() = ToProto(result.memory);
  proto.set_folder_answered(result.folder_answered);
  proto.set_snapshots(result.snapshots);
  for (const std::string& note : result.data_notes) proto.add_data_notes(ShownText(note));
  if (!result.folder.ok()) {
    proto.mutable_folder_fault()->set_code(static_cast<int>(result.folder.code()));
    proto.mutable_folder_fault()->set_message(ShownText(std::string(result.folder.message())));
  }
  return proto;
}

LoadResult FromProto(const v1::LoadCellResponse& proto) {
  const v1::FolderFault& fault = proto.folder_fault();
  LoadResult result;
  result.data = ManifestFromProto(proto.data());
  result.facts = FactsFromProto(proto.facts());
  if (proto.shown_pictures_size() > 0) {
    result.shown = std::make_shared<const std::vector<std::string>>(proto.shown_pictures().begin(),
                                                                    proto.shown_pictures().end());
  }
  result.weights = ManifestFromProto(proto.weights());
  result.fingerprint = proto.fingerprint();
  result.memory = FromProto(proto.memory());
  result.folder_answered = proto.folder_answered();
  result.snapshots = proto.snapshots();
  result.data_notes = {proto.data_notes().begin(), proto.data_notes().end()};
  result.folder = absl::Status(static_cast<absl::StatusCode>(fault.code()), fault.message());
  return result;
}

v1::ApplyDecision ToProto(const ApplyDecision& decision) {
  v1::ApplyDecision proto;
  proto.set_step(decision.step);
  proto.set_apply(decision.apply);
  proto.set_learning_rate(decision.learning_rate);
  proto.set_gradient_scale(decision.gradient_scale);
  proto.set_optimizer_steps(decision.optimizer_steps);
  return proto;
}

ApplyDecision FromProto(const v1::ApplyDecision& proto) {
  return {.step = proto.step(),
          .apply = proto.apply(),
          .optimizer_steps = proto.optimizer_steps(),
          .learning_rate = proto.learning_rate(),
          .gradient_scale = proto.gradient_scale()};
}

v1::RunRequest ToProto(const RunCommand& command) {
  v1::RunRequest proto;
  *proto.mutable_fence() = ToProto(command.fence);
  if (command.apply.has_value()) *proto.mutable_apply() = ToProto(*command.apply);
  switch (command.work) {
    case WorkKind::kNone:
      proto.set_work(v1::WORK_KIND_UNSPECIFIED);
      break;
    case WorkKind::kTrain:
      proto.set_work(v1::WORK_KIND_TRAIN);
      break;
    case WorkKind::kEvaluate:
      proto.set_work(v1::WORK_KIND_EVALUATE);
      break;
  }
  proto.set_evaluation_batch(command.evaluation_batch);
  proto.set_average(command.average);
  proto.set_snapshot(command.snapshot);
  proto.set_snapshot_kept(command.snapshot_kept);
  proto.set_snapshot_of_load(command.snapshot_of_load);
  proto.set_snapshots_end(command.snapshots_end);
  return proto;
}

absl::StatusOr<RunCommand> FromProto(const v1::RunRequest& proto) {
  RunCommand command;
  command.fence = FromProto(proto.fence());
  if (proto.has_apply()) command.apply = FromProto(proto.apply());
  switch (proto.work()) {
    case v1::WORK_KIND_UNSPECIFIED:
      command.work = WorkKind::kNone;
      break;
    case v1::WORK_KIND_TRAIN:
      command.work = WorkKind::kTrain;
      break;
    case v1::WORK_KIND_EVALUATE:
      command.work = WorkKind::kEvaluate;
      break;
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("work=", proto.work(), ": this version does not know that value"));
  }
  command.evaluation_batch = proto.evaluation_batch();
  command.average = proto.average();
  command.snapshot = proto.snapshot();
  command.snapshot_kept = proto.snapshot_kept();
  command.snapshot_of_load = proto.snapshot_of_load();
  command.snapshots_end = proto.snapshots_end();
  return command;
}

v1::RunResponse ToProto(const StepReport& report) {
  v1::RunResponse proto;
  *proto.mutable_fence() = ToProto(report.fence);
  if (report.applied.has_value()) *proto.mutable_applied() = ToProto(*report.applied);
  if (report.has_loss) proto.set_loss_sum(report.loss_sum);
  proto.set_tokens(report.tokens);
  if (report.has_loss) proto.set_terms(report.terms);
  for (const Measure& measure : report.measures) {
    v1::MeasureSum& sum = *proto.add_measures();
    sum.set_name(measure.name);
    sum.set_sum(measure.value);
  }
  for (const ClassCounts& counts : report.class_counts) {
    for (const double count : {counts.right, counts.targets, counts.guesses}) {
      proto.add_class_counts(count);
    }
  }
  for (const ShownAnswer& answer : report.shown) {
    v1::ShownAnswer& shown = *proto.add_shown_answers();
    shown.set_label(answer.label);
    shown.set_answer(answer.answer);
    shown.set_probability(answer.probability);
  }
  proto.mutable_layer_squared_norms()->Add(report.layer_squared_norms.begin(),
                                           report.layer_squared_norms.end());
  proto.set_finite(report.finite);
  proto.set_step_seconds(report.step_seconds);
  *proto.mutable_phases() = ToProto(report.phases);
  *proto.mutable_memory_peak() = ToProto(report.memory_peak);
  if (report.snapshot != SnapshotReport()) *proto.mutable_snapshot() = ToProto(report.snapshot);
  return proto;
}

StepReport FromProto(const v1::RunResponse& proto) {
  StepReport report;
  report.fence = FromProto(proto.fence());
  if (proto.has_applied()) report.applied = FromProto(proto.applied());
  report.has_loss = proto.has_loss_sum();
  report.loss_sum = proto.loss_sum();
  report.tokens = proto.tokens();
  report.terms = proto.has_terms() ? proto.terms() : static_cast<double>(proto.tokens());
  for (const v1::MeasureSum& sum : proto.measures()) {
    report.measures.push_back({sum.name(), sum.sum()});
  }
  for (int i = 0; i + 2 < proto.class_counts_size(); i += 3) {
    report.class_counts.push_back(
        {proto.class_counts(i), proto.class_counts(i + 1), proto.class_counts(i + 2)});
  }
  for (const v1::ShownAnswer& shown : proto.shown_answers()) {
    report.shown.push_back({shown.label(), shown.answer(), shown.probability()});
  }
  report.layer_squared_norms.assign(proto.layer_squared_norms().begin(),
                                    proto.layer_squared_norms().end());
  report.finite = proto.finite();
  report.step_seconds = proto.step_seconds();
  report.phases = FromProto(proto.phases());
  report.memory_peak = FromProto(proto.memory_peak());
  report.snapshot = FromProto(proto.snapshot());
  return report;
}

v1::WriteShardRequest ToProto(const WriteShardCommand& command) {
  v1::WriteShardRequest proto;
  *proto.mutable_fence() = ToProto(command.fence);
  proto.set_folder(command.folder);
  for (const std::string& file : command.snapshot_files) proto.add_snapshot_files(file);
  proto.set_snapshot_key(command.snapshot_key);
  return proto;
}

WriteShardCommand FromProto(const v1::WriteShardRequest& proto) {
  return {.fence = FromProto(proto.fence()),
          .folder = proto.folder(),
          .snapshot_files = {proto.snapshot_files().begin(), proto.snapshot_files().end()},
          .snapshot_key = proto.snapshot_key()};
}

v1::WriteShardResponse ToProto(const ShardInfo& shard) {
  v1::WriteShardResponse proto;
  proto.set_file(shard.file);
  proto.set_bytes(shard.bytes);
  proto.set_sha256(shard.sha256);
  for (const ShardTensor& tensor : shard.tensors) {
    v1::ShardTensor& target = *proto.add_tensors();
    target.set_name(tensor.entry.name);
    target.set_dtype(DTypeName(tensor.entry.dtype));
    const std::vector<int64_t>& extents = tensor.entry.shape.extents();
    target.mutable_shape()->Add(extents.begin(), extents.end());
    target.set_begin(tensor.entry.begin);
    target.set_end(tensor.entry.end);
    target.set_sha256(tensor.sha256);
  }
  return proto;
}

absl::StatusOr<ShardInfo> FromProto(const v1::WriteShardResponse& proto) {
  ShardInfo shard;
  shard.file = proto.file();
  shard.bytes = proto.bytes();
  shard.sha256 = proto.sha256();
  for (const v1::ShardTensor& source : proto.tensors()) {
    ShardTensor tensor;
    tensor.entry.name = source.name();
    ASSIGN_OR_RETURN(tensor.entry.dtype, ParseDType(source.dtype()));
    std::vector<int64_t> extents(source.shape().begin(), source.shape().end());
    RETURN_IF_ERROR(CheckedElements(extents).status());
    tensor.entry.shape = Shape(std::move(extents));
    tensor.entry.begin = source.begin();
    tensor.entry.end = source.end();
    tensor.sha256 = source.sha256();
    shard.tensors.push_back(std::move(tensor));
  }
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
  for (const LayerProfile& layer : profile) {
    v1::LayerTimes& target = *proto.add_layers();
    target.set_forward_seconds(layer.forward_seconds);
    target.set_backward_seconds(layer.backward_seconds);
  }
  return proto;
}

std::vector<LayerProfile> FromProto(const v1::ProfileModelResponse& proto) {
  std::vector<LayerProfile> profile;
  for (const v1::LayerTimes& layer : proto.layers()) {
    profile.push_back({layer.forward_seconds(), layer.backward_seconds()});
  }
  return profile;
}

}  // namespace stagecoach
