// What the stages of a SimulatedCluster do with the coordinator's commands.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "base/status.h"
#include "checkpoint/folder_probe.h"
#include "coordinator/testing/simulated_cluster.h"
#include "plan/job/optimizer_slots.h"

namespace stagecoach {
namespace {

float Draw(uint64_t seed, uint64_t step, int layer, int operation) {
  const RandomStream stream{seed, static_cast<uint32_t>(step), 0, static_cast<uint32_t>(layer),
                            static_cast<uint32_t>(operation)};
  return static_cast<float>(RandomBits(stream, 0) % 10007) / 10007.0f;
}

}  // namespace

// The command arrives after the latency. A dead stage's connection is refused; a stopped one takes
// the bytes and says nothing, as a kernel does.
void SimulatedCluster::Deliver(const std::string& address,
                               std::function<void(SimulatedStage&)> work,
                               std::function<void(absl::Status)> failed) {
  After(kLatency, [this, address, work = std::move(work), failed = std::move(failed)] {
    SimulatedStage* const stage = At(address);
    if (stage == nullptr || !stage->alive) {
      return failed(absl::UnavailableError(absl::StrCat(address, ": connection refused")));
    }
    if (stage->stopped) return;
    work(*stage);
  });
}

void SimulatedCluster::Load(const StagePeer& peer, const LoadCommand& command, double,
                            std::function<void(absl::StatusOr<LoadResult>)> done) {
  Deliver(
      peer.address,
      [this, command, done](SimulatedStage& stage) {
        if (stage.load_hangs) return;
        const absl::StatusOr<LoadResult> result = DoLoad(stage, command);
        KeepBusy(stage, load_seconds, [done, result] { done(result); });
      },
      done);
}

absl::StatusOr<LoadResult> SimulatedCluster::DoLoad(SimulatedStage& stage,
                                                    const LoadCommand& command) {
  RETURN_IF_ERROR(load_error);
  LoadResult result;
  if (!command.probe_folder.empty() && !stage.old_version) {
    FileSystem& files = stage.own_files != nullptr ? *stage.own_files : files_;
    result.folder_answered = true;
    result.folder = std::exchange(stage.folder_fault, absl::OkStatus());
    if (result.folder.ok()) {
      result.folder = AnswerFolderProbe(files, command.probe_folder, command.stage.value);
    }
    if (!result.folder.ok() && !absl::IsResourceExhausted(result.folder)) return result;
  }
  if (stage.loaded && stage.command.fence.job == command.fence.job &&
      CompareIncarnation(command.fence, stage.command.fence) <= 0) {
    return absl::AbortedError("an older load");
  }
  if (stage.loaded) BreakPasses(stage.command.fence.job, absl::AbortedError("replaced by a load"));
  stage.loaded = true;
  stage.aborted = false;
  stage.command = command;
  stage.next_step = command.fence.step;
  stage.undecided.reset();
  stage.layers.clear();
  RETURN_IF_ERROR(ReadLayers(stage, command));
  result.fingerprint = stage.fingerprint;
  const int k = command.stage.value;
  if (k == 0 || k + 1 == command.partition.stages()) {
    result.data = {1000, stage.data_sha256, 100, 5};
    if (!command.expected_data.sha256.empty() && !(command.expected_data == result.data)) {
      return absl::FailedPreconditionError("the data set changed");
    }
  }
  if (command.spec.initialize.given() && command.checkpoint_folder.empty()) {
    result.weights = {500, stage.weights_sha256};
    if (!command.expected_weights.sha256.empty() && command.expected_weights != result.weights) {
      return absl::FailedPreconditionError("the file of weights changed");
    }
  }
  return result;
}

absl::Status SimulatedCluster::ReadLayers(SimulatedStage& stage, const LoadCommand& command) {
  const Network& model = *command.network;
  const int k = command.stage.value;
  const int layers = static_cast<int>(model.layers.size());
  std::vector<SafetensorsReader> shards;
  if (!command.checkpoint_folder.empty()) {
    ASSIGN_OR_RETURN(const std::vector<std::string> names, files_.List(command.checkpoint_folder));
    for (const std::string& name : names) {
      if (!name.ends_with(".safetensors")) continue;
      ASSIGN_OR_RETURN(SafetensorsReader shard,
                       SafetensorsReader::Open(files_, command.checkpoint_folder + "/" + name));
      shards.push_back(std::move(shard));
    }
  }
  const auto read = [&shards](const std::string& name, float* value) -> absl::Status {
    for (SafetensorsReader& shard : shards) {
      const TensorEntry* const entry = shard.Find(name);
      if (entry == nullptr) continue;
      std::vector<float> values(static_cast<size_t>(entry->shape.elements()));
      RETURN_IF_ERROR(shard.Read(*entry, std::as_writable_bytes(std::span(values))));
      *value = values[0];
      return absl::OkStatus();
    }
    return absl::NotFoundError(name);
  };
  for (int l = command.partition.first(k); l < command.partition.last(k, layers); ++l) {
    std::pair<float, float>& layer = stage.layers[l];
    layer = {Draw(command.spec.seed, 0, l, 1), 0.0f};
    if (shards.empty()) continue;
    const std::string& name = model.layers[l].parameters.front().name;
    RETURN_IF_ERROR(read(name, &layer.first));
    const std::vector<std::string> slots = OptimizerSlots(command.spec.training.optimizer);
    if (command.fresh_optimizer || slots.empty()) continue;
    RETURN_IF_ERROR(read(SlotTensorName(slots.front(), name), &layer.second));
  }
  return absl::OkStatus();
}

void SimulatedCluster::Run(const StagePeer& peer, const RunCommand& command, double,
                           std::function<void(absl::StatusOr<StepReport>)> done) {
  Deliver(
      peer.address,
      [this, command, done](SimulatedStage& stage) {
        const absl::Status status = CheckRun(stage, command);
        if (!status.ok()) return After(kLatency, [done, status] { done(status); });
        StartRun(stage, command, done);
      },
      done);
}

absl::Status SimulatedCluster::CheckRun(SimulatedStage& stage, const RunCommand& command) {
  if (!stage.loaded || stage.command.fence.job != command.fence.job) {
    return absl::AbortedError("nothing is loaded here");
  }
  if (CompareIncarnation(command.fence, stage.command.fence) != 0) {
    return absl::AbortedError("another incarnation is loaded");
  }
  if (stage.aborted) return absl::AbortedError("the cell has ended");
  // From here on the coordinator speaks to the cell it loaded: what does not fit is its mistake.
  uint64_t next = stage.next_step;
  bool undecided = stage.undecided.has_value();
  if (command.apply.has_value()) {
    if (stage.undecided != command.apply->step) {
      violations.push_back(absl::StrCat("decision about step ", command.apply->step));
    }
    ++next;
    undecided = false;
  }
  if (command.fence.step != next || (command.work == WorkKind::kTrain && undecided)) {
    violations.push_back(absl::StrCat(command.fence.ToString(), " while step ", next, " is next"));
  }
  if (run_fault) return run_fault(stage.command.stage.value, command);
  return absl::OkStatus();
}

void SimulatedCluster::StartRun(SimulatedStage& stage, const RunCommand& command,
                                std::function<void(absl::StatusOr<StepReport>)> done) {
  if (command.apply.has_value()) {
    const ApplyDecision& decision = *command.apply;
    if (decision.apply) {
      optimizer_steps[command.fence.job][decision.step].insert(decision.optimizer_steps);
    }
    for (auto& [l, layer] : stage.layers) {
      if (!decision.apply) break;
      const float gradient = 0.1f * layer.first + Draw(7, decision.step, l, 2);
      layer.second = 0.9f * layer.second + static_cast<float>(decision.gradient_scale) * gradient;
      layer.first -= static_cast<float>(decision.learning_rate) * layer.second;
    }
    stage.undecided.reset();
    stage.next_step = decision.step + 1;
  }
  if (command.work == WorkKind::kNone) {
    const StepReport report = ReportOf(stage, command, 0);
    return After(kLatency, [done, report] { done(report); });
  }
  const std::string key = absl::StrCat(command.fence.ToString(), " ", command.fence.job);
  Pass& pass = passes_[key];
  pass.waiting[stage.command.stage.value] = std::move(done);
  const bool all = static_cast<int>(pass.waiting.size()) == stage.command.partition.stages();
  if (!all || pass.scheduled) return;
  pass.scheduled = true;
  for (const auto& [number, other] : stages_) {
    if (other->loaded && other->command.fence.job == command.fence.job) {
      other->busy_until = now() + step_seconds;
    }
  }
  After(step_seconds, [this, key, command] { FinishPass(key, command); });
}

void SimulatedCluster::FinishPass(const std::string& key, const RunCommand& command) {
  const auto found = passes_.find(key);
  if (found == passes_.end()) return;  // broken meanwhile
  std::map<int, SimulatedStage*> cells;
  std::map<int, float> weights;  // in layer order, whatever the partition
  for (const auto& [number, stage] : stages_) {
    const bool member = stage->alive && stage->loaded &&
                        stage->command.fence.job == command.fence.job &&
                        CompareIncarnation(stage->command.fence, command.fence) == 0;
    if (!member) continue;
    if (stage->stopped || stage->hung) return;  // its neighbours wait
    cells[stage->command.stage.value] = stage.get();
    for (const auto& [l, layer] : stage->layers) weights[l] = layer.first;
  }
  double loss = 0;
  for (const auto& [l, weight] : weights) loss += static_cast<double>(weight) * weight;
  Pass pass = std::move(found->second);
  passes_.erase(found);
  for (const auto& [k, cell] : cells) {
    if (command.work == WorkKind::kTrain) cell->undecided = command.fence.step;
    const StepReport report = ReportOf(*cell, command, loss);
    After(kLatency * (1 + k), [done = pass.waiting[k], report] { done(report); });
  }
}

StepReport SimulatedCluster::ReportOf(const SimulatedStage& stage, const RunCommand& command,
                                      double loss) {
  StepReport report;
  report.fence = command.fence;
  report.applied = command.apply;
  if (command.work == WorkKind::kNone) return report;
  report.step_seconds = step_seconds;
  report.phases[Phase::kForward] = 0.2 * step_seconds;
  report.phases[Phase::kBackward] = 0.4 * step_seconds;
  const uint64_t step = command.fence.step;
  const bool bad = command.work == WorkKind::kTrain && nonfinite_steps.contains(step);
  if (command.work == WorkKind::kTrain) {
    for (const auto& [l, layer] : stage.layers) {
      const double gradient = 0.1f * layer.first + Draw(7, step, l, 2);
      report.layer_squared_norms.push_back(gradient * gradient);
    }
  }
  if (stage.command.stage.value + 1 == stage.command.partition.stages()) {
    report.has_loss = true;
    report.tokens = 16;
    report.terms = 16;
    report.loss_sum = bad ? std::nan("") : 16 * (loss + Draw(7, step, 99, 3));
    report.finite = !bad;
  }
  return report;
}

void SimulatedCluster::BreakPasses(const std::string& job, const absl::Status& reason) {
  for (auto it = passes_.begin(); it != passes_.end();) {
    if (!it->first.ends_with(" " + job)) {
      ++it;
      continue;
    }
    for (auto& [k, done] : it->second.waiting) {
      After(0.01, [done = done, reason] { done(reason); });
    }
    it = passes_.erase(it);
  }
}

void SimulatedCluster::WriteShard(const StagePeer& peer, const WriteShardCommand& command, double,
                                  std::function<void(absl::StatusOr<ShardInfo>)> done) {
  Deliver(
      peer.address,
      [this, command, done](SimulatedStage& stage) {
        const absl::StatusOr<ShardInfo> shard = DoWriteShard(stage, command);
        KeepBusy(stage, shard_seconds, [done, shard] { done(shard); });
      },
      done);
}

absl::StatusOr<ShardInfo> SimulatedCluster::DoWriteShard(SimulatedStage& stage,
                                                         const WriteShardCommand& command) {
  if (!stage.loaded || stage.aborted ||
      CompareIncarnation(command.fence, stage.command.fence) != 0) {
    return absl::AbortedError("another incarnation is loaded");
  }
  if (stage.undecided.has_value() || stage.next_step != command.fence.step) {
    violations.push_back(
        absl::StrCat("checkpoint of an undecided step, ", command.fence.ToString()));
  }
  const Network& model = *stage.command.network;
  const std::vector<std::string> slots = OptimizerSlots(stage.command.spec.training.optimizer);
  std::deque<std::vector<float>> values;
  std::vector<TensorSource> tensors;
  const auto add = [&](const std::string& name, const Shape& shape, float value) {
    values.emplace_back(static_cast<size_t>(shape.elements()), value);
    tensors.push_back({name, DType::kF32, shape,
                       [&v = values.back()]() -> absl::StatusOr<std::span<const std::byte>> {
                         return std::as_bytes(std::span(v));
                       }});
  };
  for (const auto& [l, layer] : stage.layers) {
    for (const ParameterSpec& parameter : model.layers[l].parameters) {
      add(parameter.name, parameter.shape, layer.first);
      for (const std::string& slot : slots) {
        add(SlotTensorName(slot, parameter.name), parameter.shape, layer.second);
      }
    }
  }
  return stagecoach::WriteShard(files_, command.folder, stage.layers.begin()->first,
                                stage.layers.rbegin()->first + 1, std::move(tensors));
}

void SimulatedCluster::Profile(
    const StagePeer& peer, const ProfileCommand& command, double,
    std::function<void(absl::StatusOr<std::vector<LayerProfile>>)> done) {
  ++profiles;
  Deliver(
      peer.address,
      [this, layers = command.network->layers.size(), done](SimulatedStage& stage) {
        absl::StatusOr<std::vector<LayerProfile>> profile =
            std::vector<LayerProfile>(layers, {0.001, 0.002});
        if (!profile_error.ok()) profile = profile_error;
        KeepBusy(stage, profile_seconds, [done, profile] { done(profile); });
      },
      done);
}

// Played stages take none.
void SimulatedCluster::FindSnapshots(
    const StagePeer& peer, const std::string&, const std::string&, double,
    std::function<void(absl::StatusOr<std::vector<HeldShard>>)> done) {
  Deliver(
      peer.address,
      [this, done](SimulatedStage&) {
        After(kLatency, [done] { done(std::vector<HeldShard>()); });
      },
      done);
}

void SimulatedCluster::Abort(const StagePeer& peer, const Fence& fence, const std::string& reason) {
  aborts.push_back(reason);
  Deliver(
      peer.address,
      [this, fence](SimulatedStage& stage) {
        if (!stage.loaded || stage.command.fence.job != fence.job ||
            CompareIncarnation(fence, stage.command.fence) < 0) {
          return;
        }
        stage.aborted = true;
        BreakPasses(fence.job, absl::AbortedError("aborted"));
      },
      [](const absl::Status&) {});
}

void SimulatedCluster::Release(const StagePeer& peer, const Fence& fence) {
  Deliver(
      peer.address,
      [fence](SimulatedStage& stage) {
        if (stage.loaded && stage.command.fence.job == fence.job &&
            CompareIncarnation(fence, stage.command.fence) >= 0) {
          stage.loaded = false;
        }
      },
      [](const absl::Status&) {});
}

}  // namespace stagecoach
