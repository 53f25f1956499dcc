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
#include "devices/card/card_profile.h"
#include "devices/host/host_profile.h"
#include "network/network.h"
#include "plan/costs/cost_model.h"
#include "plan/job/job_spec.h"
#include "plan/schedules/schedule.h"
#include "plan/schedules/simulator.h"
#include "plan/stage_kernels.h"

namespace stagecoach {

// first_layers[k] = first layer of stage k; first_layers[0] == 0; stage k holds
// [first_layers[k], first_layers[k + 1]) and the last one up to the number of layers.
struct Partition {
  std::vector<int> first_layers;
  int stages() const { return static_cast<int>(first_layers.size()); }
  int first(int stage) const { return first_layers[stage]; }
  int last(int stage, int layers) const {
    return stage + 1 < stages() ? first_layers[stage + 1] : layers;
  }
  friend bool operator==(const Partition&, const Partition&) = default;
};

// Adds to the options what the network and its cut ask of a schedule: which stages load, where the
// first backward is, and where tied parameters pass.
ScheduleOptions FitToNetwork(const Network& network, const Partition& partition,
                             ScheduleOptions options);

// Contiguous partition of costs into `stages` non-empty cells that minimises the largest cell;
// among those the one with the smallest sum of squares (the paper's variance), then the earliest
// cuts. `repeats` and `shares`: layer i costs costs[i] + shares[k] * repeats[i] on stage k (shares
// in [0, 1], one per stage), as a forward that only some stages run a second time.
absl::StatusOr<Partition> MinimizeSlowest(std::span<const double> costs, int stages);
absl::StatusOr<Partition> MinimizeSlowest(std::span<const double> costs,
                                          std::span<const double> repeats,
                                          std::span<const double> shares);
absl::StatusOr<Partition> UniformPartition(int layers, int stages);

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
  int first_layer = 0, last_layer = 0;  // [first, last)
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
  double bubble_ideal = 0;      // (K - 1) / (M + K - 1)
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
