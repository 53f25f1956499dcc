#include "plan/costs/host_memory.h"

#include <algorithm>
#include <limits>
#include <map>

#include "base/numbers/saturate.h"
#include "devices/host/describe.h"
#include "network/loss_call.h"
#include "plan/costs/layer_calls.h"
#include "plan/costs/small_tensors.h"

namespace stagecoach {
namespace {

constexpr int64_t kMebibyte = int64_t{1} << 20;
// Measured on x86-64, rounded up: 31 MiB of the program's file, the rest of heap, stacks and
// generated code.
constexpr int64_t kProgramBytes = 72 * kMebibyte;
constexpr int64_t kThreadBytes = 4 * kMebibyte;  // the library packs operands of products there
constexpr int64_t kLinkBytes = 8 * kMebibyte;    // gRPC's frames of a link
constexpr int64_t kSnapshots = 2;                // of a cell, at most

void Raise(const CallDescription& call, KernelWorkspace* most) {
  most->room = std::max(most->room, call.room);
  most->shared = std::max(most->shared, call.shared);
}

KernelWorkspace WorkspaceOfLists(const LayerLists& lists, int64_t samples, DType activation,
                                 const HostProfile& host) {
  KernelWorkspace most;
  ForEachCall(lists, [&](const Call& call, const CallTypes& types, bool of_training) {
    const CallDescription described = DescribeOnHost(host, call, types, samples, activation);
    Raise(described, &most);
    if (!of_training) return;
    most.kept = SaturatingAdd(most.kept, described.kept);
    most.kept_constant = SaturatingAdd(most.kept_constant, described.kept_constant);
  });
  return most;
}

// Without what is kept. A micro-batch with a sample less may be cut into more parts, each with a
// workspace of its own.
KernelWorkspace WorkspaceOfStep(const Network& network, const HostQuery& query, int64_t batch_size,
                                int64_t micro_batches) {
  const auto of = [&](int64_t samples) {
    KernelWorkspace all;
    for (const LayerRange& cell : query.cells) {
      const KernelWorkspace one =
          HostWorkspace(network, cell.first, cell.last, samples, query.host);
      all.room = std::max(all.room, one.room);
      all.shared = std::max(all.shared, one.shared);
      all.kept = SaturatingAdd(all.kept, one.kept);
      all.kept_constant = SaturatingAdd(all.kept_constant, one.kept_constant);
    }
    return all;
  };
  const int64_t most = MicroBatchSize(batch_size, micro_batches, 0);
  const int64_t least = MicroBatchSize(batch_size, micro_batches, micro_batches - 1);
  KernelWorkspace workspace = of(most);
  if (least == most || least == 0) return workspace;
  const KernelWorkspace smaller = of(least);
  workspace.room = std::max(workspace.room, smaller.room);
  workspace.shared = std::max(workspace.shared, smaller.shared);
  return workspace;
}

// Whether products pack their weights in all steps of a job that writes, not only of prompts.
bool WritesManyRows(const JobSpec& spec) {
  if (!spec.write.has_value()) return false;
  const int64_t texts = MicroBatchSize(spec.training.batch_size, spec.training.micro_batches, 0);
  const int64_t beam = spec.write->translate ? spec.write->translate->beam : 1;
  return SaturatingMultiply(texts, beam) >= kRowsToPack;
}

}  // namespace

KernelWorkspace HostWorkspace(const Network& network, int first, int last, int64_t samples,
                              const HostProfile& host) {
  const DType activation = ComputeDType(network.precision);
  KernelWorkspace most;
  std::map<const LayerLists*, KernelWorkspace> known;  // equal layers share their lists
  for (int i = first; i < last; ++i) {
    const NetworkLayer& layer = network.layers[static_cast<size_t>(i)];
    const auto [found, is_new] = known.try_emplace(layer.lists.get());
    if (is_new) found->second = WorkspaceOfLists(*layer.lists, samples, activation, host);
    const KernelWorkspace& own = found->second;
    most.room = std::max(most.room, own.room);
    most.shared = std::max(most.shared, own.shared);
    most.kept = SaturatingAdd(most.kept, own.kept);
    most.kept_constant = SaturatingAdd(most.kept_constant, own.kept_constant);
    for (const ParameterSpec& parameter : layer.parameters) {
      Raise(DescribeNormsOnHost(parameter.shape.elements()), &most);
    }
  }
  if (last < static_cast<int>(network.layers.size())) return most;
  for (const bool gradient : {false, true}) {
    const LossCall loss = LossCallOf(network, gradient);
    Raise(DescribeOnHost(host, loss.call, loss.types, samples, activation), &most);
  }
  return most;
}

HostForecast ForecastOnHost(const JobSpec& spec, const Network& network,
                            std::span<const StageProgram> programs,
                            std::span<const StageProgram> evaluation, const HostQuery& query) {
  const TrainingSpec& training = spec.training;
  const int64_t batch_size = query.batch_size > 0 ? query.batch_size : training.batch_size;
  HostForecast forecast{.memory = ForecastStageMemory(network, programs, query.stage,
                                                      {.cells = query.cells,
                                                       .batch_size = batch_size,
                                                       .micro_batches = training.micro_batches,
                                                       .optimizer = training.optimizer,
                                                       .average = training.average.decay > 0,
                                                       .evaluation = evaluation,
                                                       .decoding = query.decoding,
                                                       .placement = query.placement})};
  int64_t& activations = forecast.memory.activations;
  const auto add = [&](int64_t bytes) { activations = SaturatingAdd(activations, bytes); };
  const KernelWorkspace workspace =
      WorkspaceOfStep(network, query, batch_size, training.micro_batches);
  const int64_t threads = std::max(1, query.host.threads);
  for (const LayerRange& cell : query.cells) {
    add(SmallTensorBytes(network, cell.first, cell.last, training.micro_batches,
                         training.optimizer));
  }
  add(SaturatingAdd(workspace.shared, workspace.room));
  add(kSmallRoomBytes * (threads - 1));
  const int64_t needed = forecast.memory.total();
  int64_t taken = SaturatingAdd(SaturatingAdd(needed, needed / 20), workspace.kept);
  const auto fits = [&](int64_t bytes) { return query.limit <= 0 || bytes <= query.limit; };
  forecast.spare.packed_weights = fits(taken);
  if (forecast.spare.packed_weights) add(workspace.kept);
  if (WritesManyRows(spec) && fits(SaturatingAdd(taken, workspace.kept_constant))) {
    forecast.spare.packed_products = true;
    taken = SaturatingAdd(taken, workspace.kept_constant);
    add(workspace.kept_constant);
  }
  forecast.spare.rooms = query.limit <= 0 ? std::numeric_limits<int64_t>::max()
                                          : std::max<int64_t>(0, query.limit - taken);
  if (workspace.room > kSmallRoomBytes) {
    // Smaller rooms of other operations may be there where another large one is not.
    add(std::min(forecast.spare.rooms, SaturatingMultiply(threads - 1, workspace.room)));
  }
  return forecast;
}

SpareMemory SpareOfProfile(const JobSpec& spec, const Network& network, int64_t limit,
                           const HostProfile& host) {
  if (limit <= 0) {
    return {.packed_weights = true, .rooms = std::numeric_limits<int64_t>::max()};
  }
  const int64_t samples = MicroBatchSize(spec.training.batch_size, spec.training.micro_batches, 0);
  const Schedule schedule = MakeSchedule({.kind = "gpipe", .stages = 1, .micro_batches = 1});
  const int layers = static_cast<int>(network.layers.size());
  int64_t most = 0, packed = 0;
  for (int layer = 0; layer < layers; ++layer) {
    const StageMemory one = ForecastStageMemory(
        network, schedule.programs, 0,
        {.cells = {{layer, layer + 1}}, .batch_size = samples, .micro_batches = 1});
    most = std::max(most, one.total());
    packed = std::max(packed, HostWorkspace(network, layer, layer + 1, samples, host).kept);
  }
  const KernelWorkspace workspace = HostWorkspace(network, 0, layers, samples, host);
  const int64_t needed = SaturatingAdd(most, SaturatingAdd(workspace.shared, workspace.room));
  const int64_t left = std::max<int64_t>(0, limit - std::min(limit, needed)) / 2;
  const bool keeps = packed <= left;
  return {.packed_weights = keeps, .rooms = keeps ? left - packed : left};
}

int64_t ProcessBytes(const StageMemory& own, int64_t state, std::optional<int64_t> before, int links,
                     int threads) {
  int64_t bytes = SaturatingAdd(own.total(), SaturatingMultiply(kSnapshots, state));
  bytes = SaturatingAdd(bytes, kProgramBytes + threads * kThreadBytes);
  if (!before.has_value()) return bytes;
  bytes = SaturatingAdd(bytes, SaturatingMultiply(kSnapshots, *before));
  return SaturatingAdd(bytes, links * kLinkBytes);
}

}  // namespace stagecoach
