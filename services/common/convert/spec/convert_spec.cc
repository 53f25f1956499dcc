#include "services/common/convert/spec/convert_spec.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "plan/job/data_kinds.h"
#include "plan/job/learning_rate_kinds.h"
#include "plan/job/optimizer_kinds.h"
#include "services/common/convert/fields/message_fields.h"
#include "services/common/convert/spec/convert_kind.h"
#include "services/common/convert/spec/convert_layer.h"
#include "services/common/convert/spec/data_places.h"

namespace stagecoach {
namespace {

absl::Status NotSet(const std::string& path, const std::string& choices) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": not set, want ", choices));
}

absl::Status ReadKinds(const v1::JobSpec& proto, JobSpec* spec) {
  const v1::Training& training = proto.training();
  ASSIGN_OR_RETURN(spec->data, DataFromProto(proto.data()));
  ASSIGN_OR_RETURN(
      spec->training.optimizer,
      KindFromProto<OptimizerSpec>(training.optimizer(), OptimizerKinds(), OptimizerSpec()));
  ASSIGN_OR_RETURN(spec->training.learning_rate,
                   KindFromProto<LearningRateSpec>(
                       training.learning_rate(), LearningRateKinds(),
                       NoKindSet(training.learning_rate(), LearningRateKinds().field())));
  return absl::OkStatus();
}

// What fields that were left out mean together, and what they must not be together.
absl::Status Complete(const v1::JobSpec& proto, JobSpec* spec) {
  PartitionSpec& partition = spec->pipeline.partition;
  if (!partition.cuts.empty()) {
    if (proto.pipeline().partition().rule() != v1::PARTITION_RULE_UNSPECIFIED) {
      return absl::InvalidArgumentError(
          "pipeline.partition: has both a rule and cuts, want only one of them");
    }
    partition.kind = PartitionSpec::Kind::kCuts;
  }
  // A job that evaluates and does not say with how many mini-batches takes all that is held out.
  if (spec->evaluation.given() && spec->evaluation.batches == 0) {
    spec->evaluation.batches = kMostEvaluationBatches;
  }
  if (proto.has_initialize() && !spec->initialize.given()) {
    return NotSet("initialize.from", "a safetensors file or a folder of exported weights");
  }
  if (spec->initialize.names.empty()) spec->initialize.names = InitializeSpec().names;
  if (proto.has_resume() && spec->resume.job.empty())
    return NotSet("resume.job", "the id of a job");
  if (proto.resume().step() < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("resume.step=", proto.resume().step(), ": want >= 0, or leave it out"));
  }
  return absl::OkStatus();
}

absl::StatusOr<JobSpec> WithoutModel(const v1::JobSpec& proto) {
  JobSpec spec;
  RETURN_IF_ERROR(ReadKinds(proto, &spec));
  RETURN_IF_ERROR(ReadMessage(proto, &spec));
  RETURN_IF_ERROR(Complete(proto, &spec));
  RETURN_IF_ERROR(PlaceInitialize(proto.initialize(), &spec.initialize));
  return spec;
}

}  // namespace

v1::Precision ToProto(Precision precision) {
  return static_cast<v1::Precision>(static_cast<int>(precision) + 1);
}

absl::StatusOr<Precision> PrecisionFromProto(v1::Precision proto) {
  if (proto == v1::PRECISION_UNSPECIFIED) return Precision::kFloat32;
  if (v1::Precision_IsValid(proto)) return static_cast<Precision>(proto - 1);
  return absl::InvalidArgumentError(
      absl::StrCat("precision=", proto, ": this version does not know that value"));
}

absl::StatusOr<DataSpec> DataFromProto(const v1::Data& proto) {
  ASSIGN_OR_RETURN(DataSpec data, KindFromProto<DataSpec>(proto, DataKinds(),
                                                          NoKindSet(proto, DataKinds().field())));
  RETURN_IF_ERROR(PlaceData(proto, &data));
  return data;
}

v1::JobSpec ToProto(const JobSpec& spec) {
  auto proto = MessageOf<v1::JobSpec>(spec);
  *proto.mutable_model() = ModelToProto(spec.network);
  KindToProto(spec.data, proto.mutable_data());
  KindToProto(spec.training.optimizer, proto.mutable_training()->mutable_optimizer());
  KindToProto(spec.training.learning_rate, proto.mutable_training()->mutable_learning_rate());
  if (spec.resume.step < 0 && proto.has_resume()) proto.mutable_resume()->clear_step();
  return proto;
}

absl::StatusOr<JobSpec> FromProto(const v1::JobSpec& proto) {
  // In the order of the YAML.
  ASSIGN_OR_RETURN(NetworkSpec network, ModelFromProto(proto.model()));
  ASSIGN_OR_RETURN(JobSpec spec, WithoutModel(proto));
  spec.network = std::move(network);
  return spec;
}

absl::StatusOr<JobSpec> JobBesideItsNetwork(const v1::JobSpec& proto) {
  ASSIGN_OR_RETURN(JobSpec spec, WithoutModel(proto));
  absl::StatusOr<NetworkSpec> network = ModelFromProto(proto.model());
  if (network.ok()) spec.network = *std::move(network);
  return spec;
}

}  // namespace stagecoach
