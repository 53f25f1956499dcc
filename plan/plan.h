// Plan: a job made concrete for K stages: which layers go where, what each stage costs and needs,
// and a forecast to check against. A pure function of its arguments.
// Errors: INVALID_ARGUMENT: more stages than layers, bad cuts. RESOURCE_EXHAUSTED: does not fit.
#ifndef STAGECOACH_PLAN_PLAN_H_
#define STAGECOACH_PLAN_PLAN_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/layer_range.h"
#include "devices/card/card_profile.h"
#include "devices/host/host_profile.h"
#include "network/network.h"
#include "plan/costs/cost_model.h"
#include "plan/job/job_spec.h"
#include "plan/schedules/schedule.h"
#include "plan/schedules/simulator.h"
#include "plan/stage_kernels.h"

namespace stagecoach {

// first_layers[c] = first layer of cell c; first_layers[0] == 0; cell c holds
// [first_layers[c], first_layers[c + 1]) and the last one up to the number of layers.
struct Partition {
  std::vector<int> first_layers;
  CellPlacement placement = {};  // of the cells
  int cells() const { return static_cast<int>(first_layers.size()); }
  int stages() const;
  int first(int cell) const { return first_layers[cell]; }
  int last(int cell, int layers) const {
    return cell + 1 < cells() ? first_layers[cell + 1] : layers;
  }
  std::vector<int> CellsOfStage(int stage) const { return CellsOf(placement, stage); }
  // Of the stage's cells, ascending. layers: of the network.
  std::vector<LayerRange> LayersOf(int stage, int layers) const;
  friend bool operator==(const Partition&, const Partition&) = default;
};

// Adds to the options what the network and its cut ask of a schedule: where cells are, which load,
// where the first backward is, and where tied parameters pass.
ScheduleOptions FitToNetwork(const Network& network, const Partition& partition,
                             ScheduleOptions options);

// Contiguous partition of costs into `cells` non-empty cells that minimises the largest cell;
// among those the one with the smallest sum of squares (the paper's variance), then the earliest
// cuts. `repeats` and `shares`: layer i costs costs[i] + shares[k] * repeats[i] in cell k (shares
// in [0, 1], one per cell), as a forward that only some cells run a second time. Placements are
// empty: each cell has a stage of its own.
absl::StatusOr<Partition> MinimizeSlowest(std::span<const double> costs, int cells);
absl::StatusOr<Partition> MinimizeSlowest(std::span<const double> costs,
                                          std::span<const double> repeats,
                                          std::span<const double> shares);
absl::StatusOr<Partition> UniformPartition(int layers, int cells);

// What the planner knows of the machines; defaults are a 2-core x86 machine on a 10 Gbit/s network.
struct PlanAssumptions {
  std::optional<double> flops_per_second;  // one stage; none: kAssumedFlopsPerSecond
  double link_bytes_per_second = 1.0e9;
  double link_latency_seconds = 100e-6;
  int64_t stage_memory_limit_bytes = 0;  // 0: unknown, not checked
  // By stage: its card, or nullopt. Stages beyond the end have none.
  std::vector<std::optional<CardProfile>> cards;
  // By stage: its processor, unless it is on a card. Stages beyond the end have HostProfile{}: one
  // thread, and the library that takes most memory.
  std::vector<HostProfile> hosts;
  // By stage: what its device has no kernels for. Stages beyond the end have all.
  std::vector<StageKernels> kernels;
};

struct StagePlan {
  std::vector<LayerRange> cells;  // ascending
  int64_t parameters = 0;
  double forward_seconds = 0, backward_seconds = 0;  // of one full micro-batch
  StageMemory memory;
  int64_t process_bytes = 0;  // plan/costs/host_memory.h; 0: on a card
};

// A layer as the plan shows it. Of one sample.
struct LayerPlan {
  std::string label;
  std::vector<ValueType> outputs;
  int64_t parameters = 0;
  int64_t forward_flops = 0, backward_flops = 0;
  // bytes that cross a cut behind it; for the last layer those that the loss reads
  int64_t cut_bytes = 0;
  int64_t own_cut_bytes = 0;  // the part of it that this layer gives; the rest rides past it
};
std::vector<LayerPlan> PlanLayers(const Network& network);

struct Plan {
  Precision precision = Precision::kFloat32;  // what memory and messages are counted in
  Partition partition;
  std::vector<StagePlan> stages;
  std::vector<LayerPlan> layers;
  Schedule schedule;
  Timeline timeline;        // simulated
  double step_seconds = 0;  // forecast
  RateSource rate_source = RateSource::kAssumed;
  double flops_per_second = 0;  // of a stage; 0 with a profile
  double bubble = 0;            // forecast: 1 - busy / (K * step)
  double bubble_ideal = 0;      // of the schedule's kind
};

// network: the job's. profile: empty for costs from the cost model. stages: > 0; the caller
// resolves auto.
absl::StatusOr<Plan> MakePlan(const JobSpec& spec, const Network& network, int stages,
                              const PlanAssumptions& assumptions,
                              std::span<const LayerProfile> profile);

// Drawn with characters, a lane a stage; of more than 40 stages every n-th and the last.
std::string FormatTimeline(const Timeline& timeline, int width);

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_PLAN_H_
