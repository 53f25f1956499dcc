#include "plan/schedules/job_schedule.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/field_check.h"
#include "base/errors/status.h"
#include "plan/schedules/own_schedule.h"
#include "plan/schedules/schedule_kinds.h"

namespace stagecoach {
namespace {

// The text goes with the job to every stage and into the journal.
constexpr size_t kMostTextBytes = size_t{256} << 10;
constexpr char kTextField[] = "pipeline.own_schedule";

// What only makes sense for a schedule that is made for any number of stages.
absl::Status CheckFixedStages(const PipelineSpec& pipeline) {
  const std::string why = "schedule own is written for one number of stages: ";
  if (pipeline.stages == 0) {
    return FieldError("pipeline.stages", "auto", absl::StrCat(why, "write that"));
  }
  if (pipeline.min_stages != 0 && pipeline.min_stages != pipeline.stages) {
    return FieldError("pipeline.min_stages", absl::StrCat(pipeline.min_stages),
                      absl::StrCat(why, "leave this out"));
  }
  if (pipeline.continue_with_fewer_stages) {
    return FieldError("pipeline.continue_with_fewer_stages", "true",
                      absl::StrCat(why, "leave this out"));
  }
  if (pipeline.cells_per_stage != 0) {
    return FieldError("pipeline.cells_per_stage", absl::StrCat(pipeline.cells_per_stage),
                      "schedule own names its cells: leave this out");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ScheduleOptions> ScheduleOptionsOf(const JobSpec& spec, int64_t stages,
                                                  int64_t layers) {
  const PipelineSpec& pipeline = spec.pipeline;
  ScheduleOptions options{.kind = pipeline.schedule,
                          .rematerialization = pipeline.rematerialization,
                          .stages = static_cast<int>(stages),
                          .micro_batches = static_cast<int>(spec.training.micro_batches)};
  if (pipeline.schedule != kOwnSchedule) {
    options.placement = PlacementOf(pipeline.schedule, options.stages, pipeline.cells_per_stage);
    return options;
  }
  ASSIGN_OR_RETURN(OwnSchedule own,
                   ParseOwnSchedule(pipeline.own_schedule,
                                    {.stages = stages,
                                     .micro_batches = spec.training.micro_batches,
                                     .layers = layers}));
  options.placement = own.placement;
  options.own = std::make_shared<const OwnSchedule>(std::move(own));
  return options;
}

absl::Status ValidateOwnSchedule(const JobSpec& spec, int64_t layers) {
  const PipelineSpec& pipeline = spec.pipeline;
  if (pipeline.schedule != kOwnSchedule) {
    if (pipeline.own_schedule.empty()) return absl::OkStatus();
    return FieldError(kTextField, "given",
                      absl::StrCat("is for schedule: own, and pipeline.schedule is ",
                                   pipeline.schedule, "; keep one of the two"));
  }
  if (pipeline.own_schedule.empty()) {
    return FieldError(kTextField, "not given",
                      "schedule own needs it: write the text here, or schedule: {file: PATH}");
  }
  if (pipeline.own_schedule.size() > kMostTextBytes) {
    return FieldError(kTextField, absl::StrCat(pipeline.own_schedule.size(), " bytes"),
                      absl::StrCat("at most ", kMostTextBytes,
                                   ": leave out all but forwards and backwards, or take fewer "
                                   "micro-batches"));
  }
  RETURN_IF_ERROR(CheckFixedStages(pipeline));
  ASSIGN_OR_RETURN(ScheduleOptions options, ScheduleOptionsOf(spec, pipeline.stages, layers));
  // What a complete text needs hangs on the cut.
  if (!options.own->complete) RETURN_IF_ERROR(CheckOwnSchedule(MakeSchedule(options)));
  options.forward_only = true;
  return CheckOwnSchedule(MakeSchedule(std::move(options)));
}

int64_t CellsOfJob(const JobSpec& spec, int64_t stages) {
  const PipelineSpec& pipeline = spec.pipeline;
  if (pipeline.schedule != kOwnSchedule) {
    return stages * CellsPerStageOf(pipeline.schedule, pipeline.cells_per_stage);
  }
  const absl::StatusOr<OwnSchedule> own = ParseOwnSchedule(
      pipeline.own_schedule,
      {.stages = stages, .micro_batches = spec.training.micro_batches, .layers = 0});
  return own.ok() ? own->cells() : 0;
}

}  // namespace stagecoach
