#include "plan/plan.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/errors/field_check.h"
#include "base/errors/status.h"
#include "base/numbers/saturate.h"
#include "network/passes/tied.h"
#include "plan/balanced_cells.h"
#include "plan/cell_ends.h"
#include "plan/costs/host_memory.h"
#include "plan/costs/training_state.h"
#include "plan/costs/writing_cost.h"
#include "plan/schedules/job_schedule.h"
#include "plan/schedules/own_schedule.h"

namespace stagecoach {
namespace {

constexpr double kLossFlopsPerLogit = 16;  // softmax, logarithm and gradient; nominal

// What the planner computes with: one full micro-batch, layer by layer.
struct Seconds {
  std::vector<LayerProfile> layers;
  double loss = 0;
};

absl::Status CheckArguments(int stages, const PlanAssumptions& assumptions,
                            std::span<const LayerProfile> profile, int layers) {
  if (stages < 1) {
    return FieldError("pipeline.stages", absl::StrCat(stages), "must be >= 1 to make a plan");
  }
  const double flops = assumptions.flops_per_second.value_or(kAssumedFlopsPerSecond);
  if (!(flops > 0) || !std::isfinite(flops)) {
    return absl::InvalidArgumentError(
        absl::StrCat("plan: flops_per_second ", flops, "; must be a number > 0"));
  }
  if (!profile.empty() && static_cast<int>(profile.size()) != layers) {
    return absl::InvalidArgumentError(
        absl::StrCat("plan: the profile has ", profile.size(), " layers, the model ", layers));
  }
  for (size_t i = 0; i < profile.size(); ++i) {
    const LayerProfile& layer = profile[i];
    const double sum = layer.forward_seconds + layer.backward_seconds;
    if (layer.forward_seconds >= 0 && layer.backward_seconds >= 0 && std::isfinite(sum)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("plan: the profile of layer ", i, " must be finite and >= 0"));
  }
  return absl::OkStatus();
}

Seconds EstimateSeconds(const JobSpec& spec, const Network& network,
                        const PlanAssumptions& assumptions, std::span<const LayerProfile> profile) {
  const double sequences =
      static_cast<double>(MicroBatchSize(spec.training.batch_size, spec.training.micro_batches, 0));
  const double per_flop = sequences / assumptions.flops_per_second.value_or(kAssumedFlopsPerSecond);
  Seconds seconds;
  seconds.layers.assign(profile.begin(), profile.end());
  double loss_share = 1;
  if (spec.write.has_value()) {
    const WritingCost cost = WritingCostOf(*spec.write, network);
    seconds.layers.clear();
    for (const double flops : cost.layer_flops) {
      seconds.layers.push_back({.forward_seconds = flops * per_flop, .backward_seconds = 0});
    }
    loss_share = cost.target_share;
  } else if (profile.empty()) {
    for (const LayerCost& cost : ModelCosts(network)) {
      seconds.layers.push_back(
          {.forward_seconds = static_cast<double>(cost.forward_flops) * per_flop,
           .backward_seconds = static_cast<double>(cost.backward_flops) * per_flop});
    }
  }
  int64_t logits = 0;
  for (const WireId id : network.objective.outputs()) {
    logits += network.wire(id).type.shape.elements();
  }
  seconds.loss = kLossFlopsPerLogit * static_cast<double>(logits) * loss_share * per_flop;
  return seconds;
}

void SetRate(const PlanAssumptions& assumptions, std::span<const LayerProfile> profile,
             Plan* plan) {
  if (!profile.empty()) {
    plan->rate_source = RateSource::kProfile;
    return;
  }
  const bool given = assumptions.flops_per_second.has_value();
  plan->rate_source = given ? RateSource::kGiven : RateSource::kAssumed;
  plan->flops_per_second = assumptions.flops_per_second.value_or(kAssumedFlopsPerSecond);
}

// By cell, the part of its forwards that the schedule runs a second time. The last cell has none: it
// computes nothing in a forward that it will recompute.
std::vector<double> RecomputedShares(const Schedule& schedule) {
  std::vector<double> shares(static_cast<size_t>(schedule.options.cells()), 0.0);
  for (const StageProgram& program : schedule.programs) {
    for (const Instruction& instruction : program.instructions) {
      if (instruction.op != Opcode::kRecompute) continue;
      shares[static_cast<size_t>(instruction.cell.value)] += 1.0 / schedule.options.micro_batches;
    }
  }
  for (double& share : shares) share = std::min(share, 1.0);  // sums of fractions
  shares.back() = 0;
  return shares;
}

absl::StatusOr<Partition> PartitionByCuts(const std::vector<int64_t>& cuts, int cells) {
  if (static_cast<int>(cuts.size()) + 1 != cells) {
    return FieldError("pipeline.partition.cuts", absl::StrCat(cuts.size(), " cuts"),
                      absl::StrCat("must be ", cells - 1, " for ", cells, " cells"));
  }
  Partition partition{.first_layers = {0}};
  for (int64_t cut : cuts) partition.first_layers.push_back(static_cast<int>(cut));
  return partition;
}

// What the partitioner weighs, layer by layer.
struct CutCosts {
  std::vector<double> once, again;  // what a micro-batch takes, and what a recompute repeats
};
CutCosts CostsToCut(const Seconds& seconds) {
  CutCosts costs;
  for (const LayerProfile& layer : seconds.layers) {
    costs.once.push_back(layer.forward_seconds + layer.backward_seconds);
    costs.again.push_back(layer.forward_seconds);
  }
  costs.once.back() += seconds.loss;
  return costs;
}

// The partitions worth a forecast, at least one. Minimising the slowest stage says nothing about
// the time to fill and drain the pipeline: with 1F1B and rematerialization it can be worth leaving
// the last stage, which recomputes nothing, with less work than the others.
absl::StatusOr<std::vector<Partition>> CandidatePartitions(const JobSpec& spec,
                                                           const Schedule& schedule,
                                                           const Seconds& seconds) {
  const int cells = schedule.options.cells();
  std::vector<Partition> candidates;
  if (spec.pipeline.partition.kind == PartitionSpec::Kind::kCuts) {
    ASSIGN_OR_RETURN(candidates.emplace_back(),
                     PartitionByCuts(spec.pipeline.partition.cuts, cells));
    return candidates;
  }
  if (spec.pipeline.partition.kind == PartitionSpec::Kind::kUniform) {
    ASSIGN_OR_RETURN(candidates.emplace_back(),
                     UniformPartition(static_cast<int>(seconds.layers.size()), cells));
    return candidates;
  }
  const CutCosts costs = CostsToCut(seconds);
  std::vector<double> shares = RecomputedShares(schedule);
  ASSIGN_OR_RETURN(candidates.emplace_back(), MinimizeSlowest(costs.once, costs.again, shares));
  std::fill(shares.begin(), shares.end(), shares.front());
  ASSIGN_OR_RETURN(candidates.emplace_back(), MinimizeSlowest(costs.once, costs.again, shares));
  if (candidates[0] == candidates[1]) candidates.pop_back();
  if (schedule.options.placement.empty()) return candidates;
  for (Partition& candidate : candidates) candidate.placement = schedule.options.placement;
  Partition balanced =
      BalanceStages(candidates.front(), costs.once, costs.again, RecomputedShares(schedule));
  if (balanced != candidates.front()) candidates.push_back(std::move(balanced));
  return candidates;
}

std::optional<CardProfile> CardOf(const PlanAssumptions& assumptions, int stage) {
  if (stage >= static_cast<int>(assumptions.cards.size())) return std::nullopt;
  return assumptions.cards[stage];
}

// What the stages run: training steps, and evaluations if the job has some. A job that writes runs
// forwards only.
struct Programs {
  std::vector<StageProgram> training, evaluation;
  std::optional<DecodingSizes> decoding;
  const DecodingSizes* decodings() const { return decoding.has_value() ? &*decoding : nullptr; }
};
// decoding: of the job.
Programs ProgramsOf(const JobSpec& spec, ScheduleOptions fitted,
                    const std::optional<DecodingSizes>& decoding) {
  Programs programs;
  if (!spec.write.has_value()) programs.training = MakeSchedule(fitted).programs;
  if (!spec.write.has_value() && !spec.evaluation.given()) return programs;
  fitted.forward_only = true;
  programs.evaluation = MakeSchedule(fitted).programs;
  programs.decoding = decoding;
  return programs;
}

HostProfile HostOf(const PlanAssumptions& assumptions, int stage) {
  const auto place = static_cast<size_t>(stage);
  return place < assumptions.hosts.size() ? assumptions.hosts[place] : HostProfile{};
}

StageMemory MemoryOfStage(const JobSpec& spec, const Network& network, const Programs& programs,
                          std::vector<LayerRange> cells, const CellPlacement& placement,
                          const PlanAssumptions& assumptions, int stage) {
  const std::optional<CardProfile> card = CardOf(assumptions, stage);
  if (!card) {
    return ForecastOnHost(spec, network, programs.training, programs.evaluation,
                          {.stage = stage,
                           .cells = std::move(cells),
                           .limit = assumptions.stage_memory_limit_bytes,
                           .host = HostOf(assumptions, stage),
                           .decoding = programs.decodings(),
                           .batch_size = ComputedSamples(spec, network),
                           .placement = placement})
        .memory;
  }
  return ForecastStageMemory(network, programs.training, stage,
                             {.cells = std::move(cells),
                              .batch_size = ComputedSamples(spec, network),
                              .micro_batches = spec.training.micro_batches,
                              .optimizer = spec.training.optimizer,
                              .average = spec.training.average.decay > 0,
                              .card = card,
                              .evaluation = programs.evaluation,
                              .decoding = programs.decodings(),
                              .placement = placement});
}

StagePlan PlanStage(const JobSpec& spec, const Network& network, const Plan& plan,
                    const Programs& programs, const Seconds& seconds, int stage,
                    const PlanAssumptions& assumptions) {
  StagePlan result;
  result.cells = plan.partition.LayersOf(stage, static_cast<int>(network.layers.size()));
  for (const LayerRange& cell : result.cells) {
    for (int i = cell.first; i < cell.last; ++i) {
      result.forward_seconds += seconds.layers[i].forward_seconds;
      result.backward_seconds += seconds.layers[i].backward_seconds;
      result.parameters += OwnElements(network.layers[i]);
    }
  }
  result.memory = MemoryOfStage(spec, network, programs, result.cells, plan.partition.placement,
                                assumptions, stage);
  return result;
}

// Two at least, so that the stages at both ends count as the others do.
int LinksOf(const ScheduleOptions& options, int stage) {
  int links = 0;
  for (const int cell : options.CellsOfStage(stage)) {
    links += options.ReceivesActivation(cell) ? 1 : 0;
    links += options.SendsActivation(cell) ? 1 : 0;
  }
  return std::max(links, 2);
}

// The first stage keeps the last one's snapshots.
void ForecastProcesses(const JobSpec& spec, const Network& network,
                       const PlanAssumptions& assumptions, Plan* plan) {
  const int stages = static_cast<int>(plan->stages.size());
  const auto state = [&](int stage) {
    return TrainingStateBytes(network, spec.training,
                              plan->stages[static_cast<size_t>(stage)].cells);
  };
  for (int stage = 0; stage < stages; ++stage) {
    if (CardOf(assumptions, stage)) continue;
    const int before = (stage + stages - 1) % stages;
    plan->stages[stage].process_bytes =
        ProcessBytes(plan->stages[stage].memory, state(stage),
                     stages == 1 ? std::nullopt : std::optional(state(before)),
                     LinksOf(plan->schedule.options, stage), HostOf(assumptions, stage).threads);
  }
}

std::string Mebibytes(int64_t bytes) {
  return absl::StrFormat("%.1f MiB", static_cast<double>(bytes) / (1 << 20));
}

std::string LayersText(const std::vector<LayerRange>& cells) {
  std::string text;
  for (const LayerRange& cell : cells) {
    absl::StrAppend(&text, text.empty() ? "[" : " and [", cell.first, ", ", cell.last, ")");
  }
  return text;
}

std::string Remedy(const JobSpec& spec, const StageMemory& memory) {
  if (spec.write.has_value()) {
    return absl::StrCat("more stages, or a smaller training.batch_size, ",
                        spec.write->translate.has_value() ? "write.translate.beam or tokens"
                                                          : "write.generate.tokens",
                        " (keys and values take ", Mebibytes(memory.decoding), ")");
  }
  const std::string usual = "more stages, more micro_batches, or rematerialization: always";
  if (memory.decoding == 0) return usual;
  return absl::StrCat("a smaller evaluation.translate.beam or tokens (translations take ",
                      Mebibytes(memory.decoding), " of the activations), or ", usual);
}

absl::Status CheckMemory(const JobSpec& spec, const Plan& plan, int64_t limit) {
  if (limit <= 0) return absl::OkStatus();
  for (size_t stage = 0; stage < plan.stages.size(); ++stage) {
    const StagePlan& s = plan.stages[stage];
    if (s.memory.total() <= limit) continue;
    return absl::ResourceExhaustedError(
        absl::StrCat("plan: stage ", stage, " with layers ", LayersText(s.cells), " needs ",
                     Mebibytes(s.memory.total()), " (parameters ", Mebibytes(s.memory.parameters),
                     ", gradients ", Mebibytes(s.memory.gradients), ", optimizer ",
                     Mebibytes(s.memory.optimizer), ", activations ",
                     Mebibytes(s.memory.activations), "), a stage has ", Mebibytes(limit),
                     " (--memory-per-stage, or --memory-limit-bytes of the stage servers); use ",
                     Remedy(spec, s.memory)));
  }
  return absl::OkStatus();
}

absl::Status CheckKernelsOfStages(const JobSpec& spec, const Network& network, const Plan& plan,
                                  const PlanAssumptions& assumptions) {
  const size_t known = std::min(assumptions.kernels.size(), plan.stages.size());
  for (size_t stage = 0; stage < known; ++stage) {
    for (const LayerRange& cell : plan.stages[stage].cells) {
      RETURN_IF_ERROR(CheckKernels(spec, network, cell.first, cell.last, static_cast<int>(stage),
                                   assumptions.kernels[stage]));
    }
  }
  return absl::OkStatus();
}

std::vector<CellCost> CostsOfCells(const Partition& partition, const Network& network,
                                   const Seconds& seconds, int64_t sequences) {
  std::vector<CellCost> costs;
  for (int cell = 0; cell < partition.cells(); ++cell) {
    const int first = partition.first(cell);
    const int last = partition.last(cell, static_cast<int>(network.layers.size()));
    const CellWires wires = WiresOfCell(network, first, last);
    const CellTies ties = TiesOfCell(network, first, last);
    CellCost cost{.activation_bytes = sequences * WireBytes(network, wires.sent),
                  .gradient_bytes = sequences * WireBytes(network, wires.received_gradients),
                  .tied_value_bytes = ValueBytes(network, ties.sent_values),
                  .tied_gradient_bytes = GradientBytes(network, ties.received_gradients)};
    for (int i = first; i < last; ++i) {
      cost.forward_seconds += seconds.layers[i].forward_seconds;
      cost.backward_seconds += seconds.layers[i].backward_seconds;
    }
    cost.recompute_seconds = cost.forward_seconds;
    costs.push_back(cost);
  }
  costs.back().loss_seconds = seconds.loss;
  return costs;
}

absl::StatusOr<Plan> PlanPartition(const JobSpec& spec, const Network& network,
                                   const PlanAssumptions& assumptions, const Seconds& seconds,
                                   const Schedule& schedule, const Partition& partition) {
  Plan plan;
  plan.precision = network.precision;
  plan.partition = partition;
  plan.partition.placement = schedule.options.placement;
  plan.schedule = schedule;
  const ScheduleOptions options = FitToNetwork(network, plan.partition, schedule.options);
  if (options != plan.schedule.options) plan.schedule = MakeSchedule(options);
  if (options.own != nullptr) RETURN_IF_ERROR(CheckOwnSchedule(plan.schedule));
  const int stages = schedule.options.stages;
  const Programs programs = ProgramsOf(spec, options, DecodingSizesOf(spec, network));
  for (int stage = 0; stage < stages; ++stage) {
    plan.stages.push_back(PlanStage(spec, network, plan, programs, seconds, stage, assumptions));
  }
  ForecastProcesses(spec, network, assumptions, &plan);
  const int64_t micro_batches = spec.training.micro_batches;
  const int64_t sequences = MicroBatchSize(spec.training.batch_size, micro_batches, 0);
  const LinkCost link{.bytes_per_second = assumptions.link_bytes_per_second,
                      .latency_seconds = assumptions.link_latency_seconds};
  const std::vector<CellCost> costs = CostsOfCells(plan.partition, network, seconds, sequences);
  ASSIGN_OR_RETURN(plan.timeline, Simulate(plan.schedule, costs, link, PipelineLimits{}));
  plan.step_seconds = plan.timeline.step_seconds;
  plan.bubble = plan.timeline.Bubble();
  return plan;
}

// Each stage and layer is a forecast of memory or three: so many take some seconds.
bool IsSearched(int64_t searches, int64_t stages, int64_t layers, int64_t micro_batches) {
  constexpr int64_t kMost = int64_t{1} << 22, kOneForecast = 1024;
  return searches * stages * layers <= kMost / (kOneForecast + stages * micro_batches);
}

// A partition in which the stage has these layers; the others have what they may, and the first
// backward is as far down as it can be.
Partition PartitionAround(int stages, int layers, int stage, int first, int last) {
  Partition partition;
  for (int k = 0; k < stages; ++k) {
    partition.first_layers.push_back(k < stage ? k : layers - (stages - k));
  }
  partition.first_layers[stage] = first;
  if (stage + 1 < stages) partition.first_layers[stage + 1] = last;
  return partition;
}

// The fastest partition whose cells all fit a stage's memory, which none of the candidates does;
// none if there is none. Where the first backward is decides what zero_bubble keeps on the stages
// behind it. With `first_backward` it is on that stage; without, each cell is asked where it costs
// least, and what is found need not fit.
std::optional<Partition> PartitionWithin(const JobSpec& spec, const Network& network,
                                         const PlanAssumptions& assumptions, const Seconds& seconds,
                                         const Schedule& schedule,
                                         std::optional<int> first_backward) {
  const int stages = schedule.options.stages, layers = static_cast<int>(network.layers.size());
  if (!schedule.options.placement.empty()) return std::nullopt;  // by cells alone it would not do
  if (!IsSearched(first_backward.has_value() ? stages : 1, stages, layers,
                  spec.training.micro_batches)) {
    return std::nullopt;
  }
  const int trained = FirstTrainedLayer(network);
  const std::optional<DecodingSizes> decoding = DecodingSizesOf(spec, network);
  const auto fits = [&](int stage, int first, int last) {
    const Partition around = PartitionAround(stages, layers, stage, first, last);
    ScheduleOptions options = FitToNetwork(network, around, schedule.options);
    if (first_backward.has_value()) {
      const bool may_be = stage < *first_backward ? last <= trained
                                                  : (stage > *first_backward) == (first > trained);
      if (!may_be) return false;
      options.first_backward = *first_backward;
    }
    const Programs programs = ProgramsOf(spec, std::move(options), decoding);
    return MemoryOfStage(spec, network, programs, {{first, last}}, {}, assumptions, stage)
               .total() <= assumptions.stage_memory_limit_bytes;
  };
  const CutCosts costs = CostsToCut(seconds);
  return MinimizeSlowestThatFits(costs.once, costs.again, RecomputedShares(schedule),
                                 FindCellEnds(layers, stages, fits));
}

}  // namespace

namespace {

std::vector<int> LoadingCells(const Network& network, const Partition& partition) {
  std::vector<int> cells;
  const int layers = static_cast<int>(network.layers.size());
  for (int c = 1; c < partition.cells(); ++c) {
    const CellWires wires = WiresOfCell(network, partition.first(c), partition.last(c, layers));
    if (!wires.loaded.empty()) cells.push_back(c);
  }
  return cells;
}

int FirstBackwardCell(const Network& network, const Partition& partition) {
  const int layer = FirstTrainedLayer(network);
  int cell = 0;
  while (cell + 1 < partition.cells() && partition.first(cell + 1) <= layer) ++cell;
  return cell;
}

void SetTied(const Network& network, const Partition& partition, ScheduleOptions* options) {
  options->tied_cuts.clear();
  options->tied_owners.clear();
  const int layers = static_cast<int>(network.layers.size());
  for (int c = 0; c < partition.cells(); ++c) {
    const CellTies ties = TiesOfCell(network, partition.first(c), partition.last(c, layers));
    if (!ties.owned.empty()) options->tied_owners.push_back(c);
    if (!ties.sent_values.empty()) options->tied_cuts.push_back(c);
  }
}

}  // namespace

int Partition::stages() const {
  return placement.empty() ? cells() : *std::max_element(placement.begin(), placement.end()) + 1;
}

std::vector<LayerRange> Partition::LayersOf(int stage, int layers) const {
  std::vector<LayerRange> ranges;
  for (const int cell : CellsOfStage(stage)) ranges.push_back({first(cell), last(cell, layers)});
  return ranges;
}

ScheduleOptions FitToNetwork(const Network& network, const Partition& partition,
                             ScheduleOptions options) {
  options.placement = partition.placement;
  options.loading = LoadingCells(network, partition);
  options.first_backward = FirstBackwardCell(network, partition);
  SetTied(network, partition, &options);
  return options;
}

absl::StatusOr<Plan> MakePlan(const JobSpec& spec, const Network& network, int stages,
                              const PlanAssumptions& assumptions,
                              std::span<const LayerProfile> profile) {
  RETURN_IF_ERROR(ValidateJob(spec, network));
  RETURN_IF_ERROR(CheckPlanSize(spec, stages));
  const int layers = static_cast<int>(network.layers.size());
  RETURN_IF_ERROR(CheckArguments(stages, assumptions, profile, layers));
  RETURN_IF_ERROR(CheckCells(spec.pipeline, stages, layers));

  const Seconds seconds = EstimateSeconds(spec, network, assumptions, profile);
  ASSIGN_OR_RETURN(ScheduleOptions options, ScheduleOptionsOf(spec, stages, layers));
  options.forward_only = spec.write.has_value();
  const Schedule schedule = MakeSchedule(std::move(options));
  ASSIGN_OR_RETURN(const std::vector<Partition> candidates,
                   CandidatePartitions(spec, schedule, seconds));
  // The fastest that fits, of stages that have the kernels; if none does, why the first one does not.
  std::optional<Plan> best;
  absl::Status refused;
  const auto consider = [&](const Partition& partition) -> absl::Status {
    ASSIGN_OR_RETURN(Plan plan,
                     PlanPartition(spec, network, assumptions, seconds, schedule, partition));
    absl::Status fits = CheckMemory(spec, plan, assumptions.stage_memory_limit_bytes);
    fits.Update(CheckKernelsOfStages(spec, network, plan, assumptions));
    refused.Update(fits);
    if (!fits.ok() || (best.has_value() && best->step_seconds <= plan.step_seconds)) {
      return absl::OkStatus();
    }
    best = std::move(plan);
    return absl::OkStatus();
  };
  for (const Partition& partition : candidates) RETURN_IF_ERROR(consider(partition));
  if (!best.has_value() && spec.pipeline.partition.kind == PartitionSpec::Kind::kAuto) {
    const auto within = [&](std::optional<int> first_backward) {
      return PartitionWithin(spec, network, assumptions, seconds, schedule, first_backward);
    };
    const std::optional<Partition> least = within(std::nullopt);
    if (least.has_value()) RETURN_IF_ERROR(consider(*least));
    // Exactly, then; the programs of other schedules hang on their own stage alone, and never come
    // here.
    if (least.has_value() && !best.has_value()) {
      for (int stage = 0; stage < stages; ++stage) {
        const std::optional<Partition> found = within(stage);
        if (found.has_value()) RETURN_IF_ERROR(consider(*found));
      }
    }
  }
  if (!best.has_value()) return refused;
  best->bubble_ideal = IdealBubble(best->schedule.options);  // of some kinds by a simulation
  best->layers = PlanLayers(network);
  SetRate(assumptions, profile, &*best);
  return *std::move(best);
}

}  // namespace stagecoach
