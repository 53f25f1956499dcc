#include "services/coordinator/convert/convert_job.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "coordinator/job/view/shown_json.h"
#include "operations/catalogue.h"
#include "services/common/convert/convert_card.h"
#include "services/common/convert/convert_control.h"
#include "services/common/convert/convert_plan.h"
#include "services/common/convert/fields/message_fields.h"
#include "services/common/convert/spec/convert_spec.h"

namespace stagecoach {

// Not the identity: whoever knows it may take the name of a stage that lives.
static void VisitFields(MessageVisitor& visit, StageRegistration& stage) {
  visit.Field("name", stage.name);
  visit.Field("incarnation", stage.incarnation);
  visit.Field("address", stage.address);
  visit.Field("device", stage.device);
  visit.Field("version", stage.version);
  visit.Field("fingerprint", stage.fingerprint);
  visit.Field("memory_limit_bytes", stage.memory_limit_bytes);
}

static void VisitFields(MessageVisitor& visit, NeighbourTotals& link) {
  visit.Field("peer", link.peer);
  visit.Field("sent_bytes", link.sent_bytes);
  visit.Field("received_bytes", link.received_bytes);
  visit.Field("inflight_messages", link.inflight_messages);
  visit.Field("reconnects", link.reconnects);
  visit.Field("transfer_p95_seconds", link.transfer_p95_seconds);
}

static void VisitFields(MessageVisitor& visit, StageTotals& totals) {
  visit.Field("memory", totals.memory);
  visit.Field("memory_peak", totals.memory_peak);
  visit.Field("memory_limit_bytes", totals.memory_limit_bytes);
  visit.Field("links", totals.neighbours);
  visit.Field("uptime_seconds", totals.uptime_seconds);
}

v1::JobState JobStateOf(JobPhase phase) {
  switch (phase) {
    case JobPhase::kSubmitted:
    case JobPhase::kPlanned:
    case JobPhase::kLoading:
    case JobPhase::kHeld:
      return v1::JOB_STATE_PENDING;
    case JobPhase::kRunning:
    case JobPhase::kRecovering:
    case JobPhase::kFinishing:
      return v1::JOB_STATE_RUNNING;
    case JobPhase::kSucceeded:
      return v1::JOB_STATE_SUCCEEDED;
    case JobPhase::kFailed:
      return v1::JOB_STATE_FAILED;
    case JobPhase::kCancelled:
      return v1::JOB_STATE_CANCELLED;
  }
  return v1::JOB_STATE_UNSPECIFIED;
}

namespace {

// Of classes there may be thousands.
void AddMeasures(const std::vector<Measure>& measures, bool of_classes,
                 google::protobuf::RepeatedPtrField<v1::Measure>* protos) {
  for (const Measure& measure : measures) {
    if (!of_classes && IsOfAClass(measure.name)) continue;
    v1::Measure& proto = *protos->Add();
    proto.set_name(measure.name);
    proto.set_value(measure.value);
  }
}

}  // namespace

v1::Job ToListed(const JobView& view) {
  v1::Job job;
  job.set_id(view.id);
  v1::JobSummary& summary = *job.mutable_summary();
  summary.set_name(view.summary.name);
  summary.set_model(view.summary.model);
  summary.set_data(view.summary.data);
  summary.set_batch_size(view.summary.batch_size);
  summary.set_micro_batches(view.summary.micro_batches);
  summary.set_epochs(view.summary.epochs);
  job.set_state(JobStateOf(view.phase));
  job.set_detail(view.set_aside ? "set aside" : JobPhaseName(view.phase));
  job.set_message(view.message);
  job.set_generation(view.generation);
  job.set_step(view.step);
  job.set_total_steps(view.total_steps);
  if (view.has_loss) job.set_loss(view.loss);
  if (view.has_evaluation_loss) job.set_evaluation_loss(view.evaluation_loss);
  AddMeasures(view.measures, false, job.mutable_measures());
  AddMeasures(view.evaluation_measures, false, job.mutable_evaluation_measures());
  job.set_tokens_per_second(view.tokens_per_second);
  job.set_step_seconds(view.step_seconds);
  job.set_bubble(view.bubble);
  job.set_bubble_ideal(view.bubble_ideal);
  job.set_skipped_steps(view.skipped_steps);
  job.set_recoveries(view.recoveries);
  if (view.last_checkpoint_step >= 0) job.set_last_checkpoint_step(view.last_checkpoint_step);
  if (view.snapshot_step >= 0) job.set_snapshot_step(view.snapshot_step);
  job.set_forecast_step_seconds(view.forecast_step_seconds);
  if (view.forecast_step_seconds > 0) {
    job.set_forecast_rate_source(ToProto(view.forecast_rate_source));
    job.set_forecast_flops_per_second(view.forecast_flops_per_second);
  }
  job.set_submitted_unix_seconds(view.submitted_unix_seconds);
  if (IsTerminal(view.phase)) job.set_finished_unix_seconds(view.finished_unix_seconds);
  for (const StageAssignment& stage : view.stages) {
    v1::JobStage& target = *job.add_stages();
    target.set_name(stage.stage_name);
    target.set_address(stage.address);
    if (!stage.cells.empty()) {
      target.set_first_layer(stage.cells.front().first);
      target.set_last_layer(stage.cells.front().last);
    }
    for (size_t i = 0; stage.cells.size() > 1 && i < stage.cells.size(); ++i) {
      *target.add_cells() = MessageOf<v1::LayerRange>(stage.cells[i]);
    }
    *target.mutable_phases() = ToProto(stage.phases);
    *target.mutable_memory_peak() = ToProto(stage.memory_peak);
    target.set_stage(stage.stage);
  }
  job.set_pipeline_stages(view.pipeline_stages);
  job.set_weights_digest(view.weights_digest);
  job.set_weights_folder(view.weights_folder);
  job.set_owner(view.owner);
  return job;
}

v1::Job ToProto(const JobView& view) {
  v1::Job job = ToListed(view);
  if (view.spec != nullptr) *job.mutable_spec() = ToProto(*view.spec);
  if (view.set_aside) job.mutable_spec()->set_name(view.summary.name);  // all that is known of it
  job.clear_measures();
  job.clear_evaluation_measures();
  AddMeasures(view.measures, true, job.mutable_measures());
  AddMeasures(view.evaluation_measures, true, job.mutable_evaluation_measures());
  return job;
}

v1::ListJobsResponse ToProto(const JobManager::Page& page) {
  v1::ListJobsResponse response;
  for (const JobView& view : page.jobs) *response.add_jobs() = ToListed(view);
  if (page.next > 0) response.set_next_page_token(absl::StrCat(page.next));
  return response;
}

absl::StatusOr<uint64_t> PageStart(const std::string& token, const char* field) {
  uint64_t before = 0;
  if (token.empty() || (absl::SimpleAtoi(token, &before) && before > 0)) return before;
  return absl::InvalidArgumentError(
      absl::StrCat(field, "=\"", token.substr(0, 32),
                   "\": want next_page_token of the page before, or nothing for the newest jobs"));
}

v1::WatchJobResponse ToProto(const JobRecord& record) {
  v1::WatchJobResponse proto;
  proto.set_number(record.number);
  proto.set_unix_seconds(record.unix_seconds);
  proto.set_step(record.step);
  switch (record.kind) {
    case JobRecord::Kind::kState:
      proto.mutable_state()->set_state(JobStateOf(record.phase));
      proto.mutable_state()->set_detail(JobPhaseName(record.phase));
      proto.mutable_state()->set_message(record.message);
      break;
    case JobRecord::Kind::kStep: {
      v1::StepRecord& step = *proto.mutable_step_done();
      step.set_loss(record.loss);
      step.set_learning_rate(record.learning_rate);
      step.set_gradient_norm(record.gradient_norm);
      step.set_tokens_per_second(record.tokens_per_second);
      step.set_step_seconds(record.step_seconds);
      step.set_bubble(record.bubble);
      step.set_bubble_ideal(record.bubble_ideal);
      step.set_skipped(record.skipped);
      step.set_nonfinite_steps(record.nonfinite_steps);
      AddMeasures(record.measures, true, step.mutable_measures());
      break;
    }
    case JobRecord::Kind::kEvaluation:
      proto.mutable_evaluation()->set_loss(record.loss);
      AddMeasures(record.measures, true, proto.mutable_evaluation()->mutable_measures());
      break;
    case JobRecord::Kind::kCheckpoint:
      proto.mutable_checkpoint()->set_error(record.message);
      break;
    case JobRecord::Kind::kRecovery:
      proto.mutable_recovery()->set_message(record.message);
      break;
    case JobRecord::Kind::kFinished:
      proto.mutable_finished()->set_state(JobStateOf(record.phase));
      proto.mutable_finished()->set_message(record.message);
      proto.mutable_finished()->set_loss(record.loss);
      proto.mutable_finished()->set_weights_digest(record.weights_digest);
      break;
    case JobRecord::Kind::kWritten:
      proto.mutable_written();  // also without texts, when a mini-batch ends
      for (const WrittenPiece& piece : record.written) {
        *proto.mutable_written()->add_texts() = ToProto(piece);
      }
      break;
  }
  return proto;
}

absl::StatusOr<v1::GetShownPicturesResponse> ShownToProto(const ShownTexts& shown,
                                                          bool with_files) {
  ASSIGN_OR_RETURN(const NamedAnswers named, DecodeShownAnswers(shown.answers));
  v1::GetShownPicturesResponse proto;
  proto.set_step(named.step);
  for (const NamedAnswer& answer : named.answers) {
    v1::ShownPicture& picture = *proto.add_pictures();
    picture.set_label(answer.shown.label);
    picture.set_answer(answer.shown.answer);
    if (std::isfinite(answer.shown.probability)) {
      picture.set_probability(answer.shown.probability);
    }
    picture.set_label_name(answer.label_name);
    picture.set_answer_name(answer.answer_name);
  }
  for (const ShownTranslation& one : named.translations) {
    *proto.add_translations() = ToProto(one);
  }
  if (!with_files) return proto;
  ASSIGN_OR_RETURN(const std::vector<std::string> files, DecodeShownPictures(shown.pictures));
  for (const std::string& file : files) proto.add_files(file);
  return proto;
}

v1::JobUsage ToProto(const JobUsage& usage) {
  v1::JobUsage proto;
  proto.set_checkpoints(usage.checkpoints);
  proto.set_checkpoint_bytes(usage.checkpoint_bytes);
  proto.set_export_bytes(usage.export_bytes);
  proto.set_record_bytes(usage.record_bytes);
  proto.set_checkpoints_error(std::string(usage.listed.message()));
  return proto;
}

v1::Stage ToProto(const StageRegistration& registration) {
  auto proto = MessageOf<v1::Stage>(registration);
  if (registration.card) *proto.mutable_card() = ToProto(*registration.card);
  *proto.mutable_processor() = ToProto(registration.host);
  for (const std::string& operation : registration.without_kernels) {
    proto.add_without_kernels(operation);
  }
  return proto;
}

StageRegistration FromProto(const v1::Stage& proto) {
  auto registration = ValueOf<StageRegistration>(proto);
  registration.identity = proto.identity();
  if (proto.has_card()) registration.card = FromProto(proto.card());
  registration.host = FromProto(proto.processor());
  // A stage of another version may have other operations, and no plan asks for those.
  for (const Operation* operation : AllOperations()) {
    const auto& without = proto.without_kernels();
    if (std::find(without.begin(), without.end(), operation->name()) == without.end()) continue;
    registration.without_kernels.emplace_back(operation->name());
  }
  return registration;
}

StageHeartbeat FromProto(const v1::RenewLeaseRequest& proto) {
  return {proto.name(),
          proto.incarnation(),
          proto.state(),
          FromProto(proto.fence()),
          proto.progress(),
          proto.waiting_for(),
          FromProto(proto.telemetry()),
          proto.newest_term(),
          proto.shard_progress()};
}

v1::StageTelemetry ToProto(const StageTotals& totals) {
  auto proto = MessageOf<v1::StageTelemetry>(totals);
  *proto.mutable_phases() = ToProto(totals.phases);
  return proto;
}

StageTotals FromProto(const v1::StageTelemetry& proto) {
  auto totals = ValueOf<StageTotals>(proto);
  totals.phases = FromProto(proto.phases());
  constexpr size_t kMost = StageTotals::kMaxNeighbours;
  if (totals.neighbours.size() > kMost) totals.neighbours.resize(kMost);
  return totals;
}

v1::StageInfo ToProto(const StageView& view) {
  v1::StageInfo proto;
  *proto.mutable_stage() = ToProto(view.registration);
  proto.set_state(StageStateName(view.state));
  proto.set_job_id(view.job);
  proto.set_last_heartbeat_unix_seconds(view.last_heartbeat_unix_seconds);
  proto.set_waiting_for(view.waiting_for);
  *proto.mutable_telemetry() = ToProto(view.totals);
  return proto;
}

}  // namespace stagecoach
