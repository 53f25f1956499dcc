#include "services/common/convert/convert_plan.h"

#include <string>
#include <utility>
#include <vector>

#include "services/common/convert/convert_control.h"
#include "services/common/convert/fields/message_fields.h"
#include "services/common/convert/spec/convert_spec.h"

namespace stagecoach {

v1::RateSource ToProto(RateSource source) {
  return static_cast<v1::RateSource>(static_cast<int>(source) + 1);
}

static void VisitFields(MessageVisitor& visit, StagePlan& stage) {
  int64_t first_layer = stage.cells.front().first, last_layer = stage.cells.front().last;
  visit.Field("first_layer", first_layer);
  visit.Field("last_layer", last_layer);
  if (stage.cells.size() > 1) visit.Field("cells", stage.cells);
  visit.Field("parameters", stage.parameters);
  visit.Field("forward_seconds", stage.forward_seconds);
  visit.Field("backward_seconds", stage.backward_seconds);
  visit.Field("memory", stage.memory);
  visit.Field("process_bytes", stage.process_bytes);
}

static void VisitFields(MessageVisitor& visit, LayerPlan& layer) {
  std::vector<std::string> outputs;
  for (const ValueType& type : layer.outputs) outputs.push_back(FormatType(type));
  visit.Field("label", layer.label);
  visit.Field("outputs", outputs);
  visit.Field("parameters", layer.parameters);
  visit.Field("forward_flops", layer.forward_flops);
  visit.Field("backward_flops", layer.backward_flops);
  visit.Field("cut_bytes", layer.cut_bytes);
  visit.Field("own_cut_bytes", layer.own_cut_bytes);
}

static void VisitFields(MessageVisitor& visit, Plan& plan) {
  visit.Field("stages", plan.stages);
  visit.Field("layers", plan.layers);
  visit.Field("step_seconds", plan.step_seconds);
  visit.Field("flops_per_second", plan.flops_per_second);
  visit.Field("bubble", plan.bubble);
  visit.Field("bubble_ideal", plan.bubble_ideal);
}

v1::PlanJobResponse ToProto(const Plan& plan, size_t most_schedule_bytes) {
  constexpr int kTimelineWidth = 96;  // fits a terminal with the lane's name before it
  auto proto = MessageOf<v1::PlanJobResponse>(plan);
  proto.set_precision(ToProto(plan.precision));
  proto.set_rate_source(ToProto(plan.rate_source));
  std::string schedule = FormatSchedule(plan.schedule);
  if (schedule.size() <= most_schedule_bytes) proto.set_schedule(std::move(schedule));
  proto.set_timeline(FormatTimeline(plan.timeline, kTimelineWidth));
  return proto;
}

}  // namespace stagecoach
