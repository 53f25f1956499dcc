#include "services/common/convert/convert_plan.h"

#include "services/common/convert/convert_control.h"
#include "services/common/convert/convert_spec.h"

namespace stagecoach {

v1::RateSource ToProto(RateSource source) {
  switch (source) {
    case RateSource::kAssumed:
      return v1::RATE_SOURCE_ASSUMED;
    case RateSource::kGiven:
      return v1::RATE_SOURCE_GIVEN;
    case RateSource::kProfile:
      return v1::RATE_SOURCE_PROFILE;
  }
  return v1::RATE_SOURCE_UNSPECIFIED;
}

v1::PlanJobResponse ToProto(const Plan& plan, size_t most_schedule_bytes) {
  constexpr int kTimelineWidth = 96;  // fits a terminal with the lane's name before it
  v1::PlanJobResponse proto;
  proto.set_precision(ToProto(plan.precision));
  for (const StagePlan& stage : plan.stages) {
    v1::PlannedStage& target = *proto.add_stages();
    target.set_first_layer(stage.first_layer);
    target.set_last_layer(stage.last_layer);
    target.set_parameters(stage.parameters);
    target.set_forward_seconds(stage.forward_seconds);
    target.set_backward_seconds(stage.backward_seconds);
    *target.mutable_memory() = ToProto(stage.memory);
    target.set_process_bytes(stage.process_bytes);
  }
  for (const LayerPlan& layer : plan.layers) {
    v1::PlannedLayer& target = *proto.add_layers();
    target.set_label(layer.label);
    for (const ValueType& type : layer.outputs) target.add_outputs(FormatType(type));
    target.set_parameters(layer.parameters);
    target.set_forward_flops(layer.forward_flops);
    target.set_backward_flops(layer.backward_flops);
    target.set_cut_bytes(layer.cut_bytes);
    target.set_own_cut_bytes(layer.own_cut_bytes);
  }
  proto.set_step_seconds(plan.step_seconds);
  proto.set_rate_source(ToProto(plan.rate_source));
  proto.set_flops_per_second(plan.flops_per_second);
  proto.set_bubble(plan.bubble);
  proto.set_bubble_ideal(plan.bubble_ideal);
  std::string schedule = FormatSchedule(plan.schedule);
  if (schedule.size() <= most_schedule_bytes) proto.set_schedule(std::move(schedule));
  proto.set_timeline(FormatTimeline(plan.timeline, kTimelineWidth));
  return proto;
}

}  // namespace stagecoach
