#include "services/common/convert/convert_spec.h"

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status.h"
#include "plan/job/data_kinds.h"
#include "plan/job/evaluation_batches.h"
#include "plan/job/learning_rate_kinds.h"
#include "plan/job/optimizer_kinds.h"
#include "services/common/convert/convert_kind.h"
#include "services/common/convert/convert_layer.h"
#include "services/common/convert/enum_name.h"

namespace stagecoach {
namespace {

absl::Status NotSet(const std::string& path, const std::string& choices) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": not set, want ", choices));
}

absl::Status UnknownValue(const std::string& path, int value) {
  return absl::InvalidArgumentError(
      absl::StrCat(path, "=", value, ": this version does not know that value"));
}

v1::Training TrainingToProto(const TrainingSpec& spec) {
  v1::Training proto;
  proto.set_steps(spec.steps);
  proto.set_batch_size(spec.batch_size);
  proto.set_micro_batches(spec.micro_batches);
  KindToProto(spec.optimizer, proto.mutable_optimizer());
  KindToProto(spec.learning_rate, proto.mutable_learning_rate());
  proto.set_gradient_clip_norm(spec.gradient_clip_norm);
  proto.set_max_nonfinite_steps(spec.max_nonfinite_steps);
  for (const std::string& pattern : spec.freeze) proto.add_freeze(pattern);
  proto.set_epochs(spec.epochs);
  if (spec.average.decay > 0) {
    proto.mutable_average()->set_decay(spec.average.decay);
    proto.mutable_average()->set_warmup(spec.average.warmup);
  }
  if (spec.until.given()) {
    proto.mutable_until()->set_loss(spec.until.loss);
    proto.mutable_until()->set_accuracy(spec.until.accuracy);
    proto.mutable_until()->set_top_5(spec.until.top_5);
    proto.mutable_until()->set_mean_iou(spec.until.mean_iou);
  }
  return proto;
}

absl::StatusOr<TrainingSpec> TrainingFromProto(const v1::Training& proto) {
  TrainingSpec spec;
  spec.steps = proto.steps();
  spec.batch_size = proto.batch_size();
  spec.micro_batches = proto.micro_batches();
  ASSIGN_OR_RETURN(spec.optimizer, KindFromProto<OptimizerSpec>(proto.optimizer(), OptimizerKinds(),
                                                                OptimizerSpec()));
  ASSIGN_OR_RETURN(spec.learning_rate,
                   KindFromProto<LearningRateSpec>(
                       proto.learning_rate(), LearningRateKinds(),
                       NoKindSet(proto.learning_rate(), LearningRateKinds().field())));
  spec.gradient_clip_norm = proto.gradient_clip_norm();
  if (proto.has_max_nonfinite_steps()) spec.max_nonfinite_steps = proto.max_nonfinite_steps();
  spec.freeze.assign(proto.freeze().begin(), proto.freeze().end());
  spec.epochs = proto.epochs();
  spec.average = {proto.average().decay(), proto.average().warmup()};
  spec.until = {proto.until().loss(), proto.until().accuracy(), proto.until().top_5(),
                proto.until().mean_iou()};
  return spec;
}

absl::StatusOr<std::string> ScheduleFromProto(v1::ScheduleKind proto) {
  if (proto == v1::SCHEDULE_KIND_UNSPECIFIED) return PipelineSpec().schedule;
  const auto* const value = v1::ScheduleKind_descriptor()->FindValueByNumber(proto);
  if (value == nullptr) return UnknownValue("pipeline.schedule", proto);
  return ShortEnumName(*value);
}

v1::Partition PartitionToProto(const PartitionSpec& spec) {
  v1::Partition proto;
  switch (spec.kind) {
    case PartitionSpec::Kind::kAuto:
      proto.set_rule(v1::PARTITION_RULE_AUTO);
      break;
    case PartitionSpec::Kind::kUniform:
      proto.set_rule(v1::PARTITION_RULE_UNIFORM);
      break;
    case PartitionSpec::Kind::kCuts:
      proto.mutable_cuts()->Add(spec.cuts.begin(), spec.cuts.end());
      break;
  }
  return proto;
}

absl::StatusOr<PartitionSpec> PartitionFromProto(const v1::Partition& proto) {
  PartitionSpec spec;
  if (proto.cuts_size() > 0) {
    if (proto.rule() != v1::PARTITION_RULE_UNSPECIFIED) {
      return absl::InvalidArgumentError(
          "pipeline.partition: has both a rule and cuts, want only one of them");
    }
    spec.kind = PartitionSpec::Kind::kCuts;
    spec.cuts.assign(proto.cuts().begin(), proto.cuts().end());
    return spec;
  }
  switch (proto.rule()) {
    case v1::PARTITION_RULE_UNSPECIFIED:
    case v1::PARTITION_RULE_AUTO:
      spec.kind = PartitionSpec::Kind::kAuto;
      return spec;
    case v1::PARTITION_RULE_UNIFORM:
      spec.kind = PartitionSpec::Kind::kUniform;
      return spec;
    default:
      return UnknownValue("pipeline.partition.rule", proto.rule());
  }
}

v1::Pipeline PipelineToProto(const PipelineSpec& spec) {
  v1::Pipeline proto;
  proto.set_stages(spec.stages);
  const std::optional<int> schedule = EnumNumber(*v1::ScheduleKind_descriptor(), spec.schedule);
  CHECK(schedule.has_value()) << "no number for the schedule " << spec.schedule;
  proto.set_schedule(static_cast<v1::ScheduleKind>(*schedule));
  switch (spec.rematerialization) {
    case Rematerialization::kAlways:
      proto.set_rematerialization(v1::REMATERIALIZATION_ALWAYS);
      break;
    case Rematerialization::kExceptFirst:
      proto.set_rematerialization(v1::REMATERIALIZATION_EXCEPT_FIRST);
      break;
    case Rematerialization::kNever:
      proto.set_rematerialization(v1::REMATERIALIZATION_NEVER);
      break;
  }
  *proto.mutable_partition() = PartitionToProto(spec.partition);
  proto.set_continue_with_fewer_stages(spec.continue_with_fewer_stages);
  proto.set_replacement_timeout_seconds(spec.replacement_timeout_seconds);
  proto.set_mixed_devices(spec.mixed_devices);
  proto.set_min_stages(spec.min_stages);
  return proto;
}

absl::StatusOr<PipelineSpec> PipelineFromProto(const v1::Pipeline& proto) {
  PipelineSpec spec;
  spec.stages = proto.stages();
  ASSIGN_OR_RETURN(spec.schedule, ScheduleFromProto(proto.schedule()));
  switch (proto.rematerialization()) {
    case v1::REMATERIALIZATION_UNSPECIFIED:
    case v1::REMATERIALIZATION_ALWAYS:
      spec.rematerialization = Rematerialization::kAlways;
      break;
    case v1::REMATERIALIZATION_EXCEPT_FIRST:
      spec.rematerialization = Rematerialization::kExceptFirst;
      break;
    case v1::REMATERIALIZATION_NEVER:
      spec.rematerialization = Rematerialization::kNever;
      break;
    default:
      return UnknownValue("pipeline.rematerialization", proto.rematerialization());
  }
  ASSIGN_OR_RETURN(spec.partition, PartitionFromProto(proto.partition()));
  spec.continue_with_fewer_stages = proto.continue_with_fewer_stages();
  if (proto.has_replacement_timeout_seconds()) {
    spec.replacement_timeout_seconds = proto.replacement_timeout_seconds();
  }
  spec.mixed_devices = proto.mixed_devices();
  spec.min_stages = proto.min_stages();
  return spec;
}

}  // namespace

v1::Precision ToProto(Precision precision) {
  switch (precision) {
    case Precision::kFloat32:
      return v1::PRECISION_FLOAT32;
    case Precision::kTensorFloat32:
      return v1::PRECISION_TENSORFLOAT32;
    case Precision::kBfloat16:
      return v1::PRECISION_BFLOAT16;
  }
  return v1::PRECISION_UNSPECIFIED;
}

absl::StatusOr<Precision> PrecisionFromProto(v1::Precision proto) {
  switch (proto) {
    case v1::PRECISION_UNSPECIFIED:
    case v1::PRECISION_FLOAT32:
      return Precision::kFloat32;
    case v1::PRECISION_TENSORFLOAT32:
      return Precision::kTensorFloat32;
    case v1::PRECISION_BFLOAT16:
      return Precision::kBfloat16;
    default:
      return UnknownValue("precision", proto);
  }
}

absl::StatusOr<DataSpec> DataFromProto(const v1::Data& proto) {
  return KindFromProto<DataSpec>(proto, DataKinds(), NoKindSet(proto, DataKinds().field()));
}

v1::JobSpec ToProto(const JobSpec& spec) {
  v1::JobSpec proto;
  proto.set_name(spec.name);
  proto.set_seed(spec.seed);
  proto.set_precision(ToProto(spec.precision));
  *proto.mutable_model() = ModelToProto(spec.model);
  KindToProto(spec.data, proto.mutable_data());
  *proto.mutable_training() = TrainingToProto(spec.training);
  *proto.mutable_pipeline() = PipelineToProto(spec.pipeline);
  proto.mutable_checkpoint()->set_every_steps(spec.checkpoint.every_steps);
  proto.mutable_checkpoint()->set_keep(spec.checkpoint.keep);
  proto.mutable_checkpoint()->set_every_epochs(spec.checkpoint.every_epochs);
  proto.mutable_checkpoint()->set_never(spec.checkpoint.never);
  if (spec.snapshot != SnapshotSpec()) {
    proto.mutable_snapshot()->set_every_steps(spec.snapshot.every_steps);
    proto.mutable_snapshot()->set_never(spec.snapshot.never);
  }
  proto.mutable_evaluation()->set_every_steps(spec.evaluation.every_steps);
  proto.mutable_evaluation()->set_batches(spec.evaluation.batches);
  proto.mutable_evaluation()->set_every_epochs(spec.evaluation.every_epochs);
  if (spec.initialize.given()) {
    proto.mutable_initialize()->set_from(spec.initialize.from);
    proto.mutable_initialize()->set_names(spec.initialize.names);
    for (const std::string& pattern : spec.initialize.except) {
      proto.mutable_initialize()->add_except(pattern);
    }
  }
  if (!spec.resume_job.empty() || spec.resume_step >= 0) {
    proto.mutable_resume()->set_job(spec.resume_job);
    proto.mutable_resume()->set_fresh_optimizer(spec.resume_fresh_optimizer);
    if (spec.resume_step >= 0) proto.mutable_resume()->set_step(spec.resume_step);
  }
  return proto;
}

namespace {

absl::StatusOr<JobSpec> WithoutModel(const v1::JobSpec& proto) {
  JobSpec spec;
  spec.name = proto.name();
  spec.seed = proto.seed();
  ASSIGN_OR_RETURN(spec.precision, PrecisionFromProto(proto.precision()));
  ASSIGN_OR_RETURN(spec.data, DataFromProto(proto.data()));
  ASSIGN_OR_RETURN(spec.training, TrainingFromProto(proto.training()));
  ASSIGN_OR_RETURN(spec.pipeline, PipelineFromProto(proto.pipeline()));
  spec.checkpoint.every_steps = proto.checkpoint().every_steps();
  spec.checkpoint.every_epochs = proto.checkpoint().every_epochs();
  spec.checkpoint.never = proto.checkpoint().never();
  if (proto.checkpoint().has_keep()) spec.checkpoint.keep = proto.checkpoint().keep();
  spec.snapshot = {.every_steps = proto.snapshot().every_steps(),
                   .never = proto.snapshot().never()};
  spec.evaluation.every_steps = proto.evaluation().every_steps();
  spec.evaluation.every_epochs = proto.evaluation().every_epochs();
  spec.evaluation.batches = proto.evaluation().batches();
  // A job that evaluates and does not say with how many mini-batches takes all that is held out.
  if (spec.evaluation.given() && spec.evaluation.batches == 0) {
    spec.evaluation.batches = kMostEvaluationBatches;
  }
  if (proto.has_initialize()) {
    if (proto.initialize().from().empty()) {
      return NotSet("initialize.from", "a safetensors file or a folder of exported weights");
    }
    spec.initialize.from = proto.initialize().from();
    if (!proto.initialize().names().empty()) spec.initialize.names = proto.initialize().names();
    spec.initialize.except.assign(proto.initialize().except().begin(),
                                  proto.initialize().except().end());
  }
  if (proto.has_resume()) {
    if (proto.resume().job().empty()) return NotSet("resume.job", "the id of a job");
    if (proto.resume().has_step() && proto.resume().step() < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("resume.step=", proto.resume().step(), ": want >= 0, or leave it out"));
    }
    spec.resume_job = proto.resume().job();
    spec.resume_step = proto.resume().has_step() ? proto.resume().step() : -1;
    spec.resume_fresh_optimizer = proto.resume().fresh_optimizer();
  }
  return spec;
}

}  // namespace

absl::StatusOr<JobSpec> FromProto(const v1::JobSpec& proto) {
  // In the order of the YAML.
  ASSIGN_OR_RETURN(ModelSpec model, ModelFromProto(proto.model()));
  ASSIGN_OR_RETURN(JobSpec spec, WithoutModel(proto));
  spec.model = std::move(model);
  return spec;
}

absl::StatusOr<JobSpec> JobBesideItsNetwork(const v1::JobSpec& proto) {
  ASSIGN_OR_RETURN(JobSpec spec, WithoutModel(proto));
  absl::StatusOr<ModelSpec> model = ModelFromProto(proto.model());
  if (model.ok()) spec.model = *std::move(model);
  return spec;
}

}  // namespace stagecoach
