// What the stages of a SimulatedCluster do with the coordinator's commands.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "base/numbers/random.h"
#include "checkpoint/folder_probe.h"
#include "coordinator/testing/simulated_cluster.h"
#include "network/passes/lora.h"
#include "network/stored.h"
#include "plan/job/optimizer_slots.h"

namespace stagecoach {
namespace {

float Draw(uint64_t seed, uint64_t step, int layer, int operation) {
  const RandomStream stream{seed, static_cast<uint32_t>(step), 0, static_cast<uint32_t>(layer),
                            static_cast<uint32_t>(operation)};
  return static_cast<float>(RandomBits(stream, 0) % 10007) / 10007.0f;
}

bool HasLastCell(const LoadCommand& command) {
  return StageOf(command.partition.placement, command.partition.cells() - 1) ==
         command.stage.value;
}

float Gradient(float weight, uint64_t step, int layer) {
  return 0.1f * weight + Draw(7, step, layer, 2);
}

}  // namespace

// The command arrives after the latency. A dead stage's connection is refused; a stopped one takes
// the bytes and says nothing, as a kernel does.
void SimulatedCluster::Deliver(const StagePeer& peer, std::function<void(absl::Status)> failed,
                               std::function<void(SimulatedStage&)> work) {
  After(kLatency, [this, address = peer.address, work, failed] {
    const auto found = std::find_if(stages_.begin(), stages_.end(), [&](const auto& entry) {
      return entry.second->address == address;
    });
    if (found == stages_.end() || !found->second->alive) {
      failed(absl::UnavailableError(absl::StrCat(address, ": connection refused")));
    } else if (!found->second->stopped) {
      work(*found->second);
    }
  });
}

void SimulatedCluster::Load(const StagePeer& peer, const LoadCommand& command, double,
                            std::function<void(absl::StatusOr<LoadResult>)> done) {
  Deliver(peer, done, [this, command, done](SimulatedStage& stage) {
    stage.loading_fence = command.fence;
    if (stage.load_hangs) return;
    const absl::StatusOr<LoadResult> result = DoLoad(stage, command);
    KeepBusy(stage, load_seconds, [done, result] { done(result); });
  });
}

absl::StatusOr<LoadResult> SimulatedCluster::DoLoad(SimulatedStage& stage,
                                                    const LoadCommand& command) {
  LoadResult result;
  if (!command.probe_folder.empty() && !stage.old_version) {
    FileSystem& files = stage.own_files != nullptr ? *stage.own_files : files_;
    result.folder_answered = true;
    result.folder = AnswerFolderProbe(files, command.probe_folder, command.stage.value);
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
  stage.copied.reset();
  stage.writes.reset();
  RETURN_IF_ERROR(ReadLayers(stage));
  result.fingerprint = stage.fingerprint;
  const int k = command.stage.value;
  if (k == 0 || HasLastCell(command)) {
    result.data = {1000, stage.data_sha256, 100, 5};
    if (!command.expected_data.sha256.empty() && !(command.expected_data == result.data)) {
      return absl::FailedPreconditionError("the data set changed");
    }
  }
  if (command.spec.initialize.given() && (!command.resumes() || HasBase(*command.network))) {
    result.weights = {.bytes = 500,
                      .header_sha256 = "header",
                      .tensors = 2,
                      .read = {{"trunk", "F32", "[2]", stage.weights_sha256}}};
  }
  return result;
}

absl::Status SimulatedCluster::ReadLayers(SimulatedStage& stage) {
  const LoadCommand& command = stage.command;
  const Network& network = *command.network;
  const int k = command.stage.value, layers = static_cast<int>(network.layers.size());
  stage.layers.clear();
  for (const LayerRange& cell : command.partition.LayersOf(k, layers)) {
    for (int l = cell.first; l < cell.last; ++l) stage.layers[l] = Draw(command.spec.seed, 0, l, 1);
  }
  if (command.checkpoint_folder.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::vector<std::string> names, files_.List(command.checkpoint_folder));
  for (const std::string& name : names) {
    if (!name.ends_with(".safetensors")) continue;
    ASSIGN_OR_RETURN(SafetensorsReader shard,
                     SafetensorsReader::Open(files_, command.checkpoint_folder + "/" + name));
    for (auto& [l, weight] : stage.layers) {
      const std::vector<ParameterSpec>& parameters = network.layers[l].parameters;
      const auto stored = std::find_if(parameters.begin(), parameters.end(), IsStored);
      const TensorEntry* const entry =
          stored == parameters.end() ? nullptr : shard.Find(stored->name);
      if (entry == nullptr) continue;
      std::vector<float> values(static_cast<size_t>(entry->shape.elements()));
      RETURN_IF_ERROR(shard.Read(*entry, std::as_writable_bytes(std::span(values))));
      weight = values[0];
    }
  }
  return absl::OkStatus();
}

void SimulatedCluster::Run(const StagePeer& peer, const RunCommand& command, double,
                           std::function<void(absl::StatusOr<StepReport>)> done) {
  Deliver(peer, done, [this, command, done](SimulatedStage& stage) {
    const absl::Status status = CheckRun(stage, command);
    if (!status.ok()) return After(kLatency, [done, status] { done(status); });
    StartRun(stage, command, done);
  });
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
    const auto rate = static_cast<float>(decision.learning_rate * decision.gradient_scale);
    for (auto& [l, weight] : stage.layers) {
      if (decision.apply) weight -= rate * Gradient(weight, decision.step, l);
    }
    stage.undecided.reset();
    stage.next_step = decision.step + 1;
  }
  if (command.work == WorkKind::kNone) {
    StepReport report = ReportOf(stage, command, 0);
    if (command.copy_shard && room_for_copies) {
      stage.copied = {command.fence, stage.layers};
      report.shard_copied = true;
    }
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
    weights.insert(stage->layers.begin(), stage->layers.end());
  }
  double loss = 0;
  for (const auto& [l, weight] : weights) loss += static_cast<double>(weight) * weight;
  Pass pass = std::move(found->second);
  passes_.erase(found);
  for (const auto& [k, cell] : cells) {
    if (command.work == WorkKind::kTrain) cell->undecided = command.fence.step;
    StepReport report = ReportOf(*cell, command, loss);
    const bool last = HasLastCell(cell->command);
    if (command.work == WorkKind::kWrite && last) Write(*cell, command, loss, &report);
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
    for (const auto& [l, weight] : stage.layers) {
      const double gradient = Gradient(weight, step, l);
      report.layer_squared_norms.push_back(gradient * gradient);
    }
  }
  if (command.work == WorkKind::kWrite) return report;
  if (HasLastCell(stage.command)) {
    report.has_loss = true;
    report.targets = 16;
    report.terms = 16;
    report.loss_sum = bad ? std::nan("") : 16 * (loss + Draw(7, step, 99, 3));
    report.finite = !bad;
  }
  return report;
}

std::string SimulatedText(int64_t line, double weights) {
  return absl::StrCat("text ", line, " of ", weights, std::string(static_cast<size_t>(line), '.'));
}

// Each round writes a byte of each text.
void SimulatedCluster::Write(SimulatedStage& stage, const RunCommand& command, double weights,
                             StepReport* report) {
  const uint64_t batch = command.evaluation_batch;
  if (command.goes_on != stage.writes.has_value() || stage.writes.value_or(batch) != batch) {
    violations.push_back(absl::StrCat("writes mini-batch ", batch, ", ", command.fence.ToString()));
  }
  if (!command.goes_on) stage.written = 0;
  const JobSpec& spec = stage.command.spec;
  const int64_t lines = spec.training.batch_size;
  const int64_t first = static_cast<int64_t>(batch) * lines;
  report->write_over = true;
  for (int64_t line = first; line < std::min(first + lines, std::ssize(spec.write->lines));
       ++line) {
    const std::string text = SimulatedText(line, weights);
    if (stage.written >= std::ssize(text)) continue;
    WrittenPiece piece{.line = line, .offset = stage.written};
    piece.text =
        text.substr(static_cast<size_t>(stage.written), static_cast<size_t>(command.rounds));
    piece.done = stage.written + command.rounds >= std::ssize(text);
    if (piece.done) piece.tokens = std::ssize(text);
    report->write_over = report->write_over && piece.done;
    report->written.push_back(std::move(piece));
  }
  stage.written += command.rounds;
  stage.writes = report->write_over ? std::nullopt : std::optional(batch);
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
  Deliver(peer, done, [this, command, done](SimulatedStage& stage) {
    const absl::StatusOr<ShardInfo> shard = DoWriteShard(stage, command);
    if (!stage.copied.has_value() || stage.copied->first != command.fence) {
      return KeepBusy(stage, shard_seconds, [done, shard] { done(shard); });
    }
    if (shards_stuck) return;
    stage.writes_until = now() + shard_seconds;
    After(shard_seconds + kLatency, [this, &stage, step = command.fence.step, done, shard] {
      if (stage.loaded && stage.next_step > step) ++shards_beside;
      done(shard);
    });
  });
}

absl::StatusOr<ShardInfo> SimulatedCluster::DoWriteShard(SimulatedStage& stage,
                                                         const WriteShardCommand& command) {
  if (!stage.loaded || stage.aborted ||
      CompareIncarnation(command.fence, stage.command.fence) != 0) {
    return absl::AbortedError("another incarnation is loaded");
  }
  if (stage.copied.has_value() && stage.copied->first == command.fence) {
    return WriteLayers(files_, stage.command, command.folder, stage.copied->second);
  }
  if (stage.undecided.has_value() || stage.next_step != command.fence.step) {
    violations.push_back(
        absl::StrCat("checkpoint of an undecided step, ", command.fence.ToString()));
  }
  return WriteLayers(files_, stage.command, command.folder, stage.layers);
}

absl::StatusOr<ShardInfo> WriteLayers(FileSystem& files, const LoadCommand& loaded,
                                      const std::string& folder,
                                      const std::map<int, float>& layers) {
  std::deque<std::vector<float>> values;
  std::vector<TensorSource> tensors;
  const auto add = [&](const std::string& name, const Shape& shape, float value) {
    values.emplace_back(static_cast<size_t>(shape.elements()), value);
    tensors.push_back({name, DType::kF32, shape,
                       [&v = values.back()]() -> absl::StatusOr<std::span<const std::byte>> {
                         return std::as_bytes(std::span(v));
                       }});
  };
  for (const auto& [l, weight] : layers) {
    for (const ParameterSpec& parameter : loaded.network->layers[l].parameters) {
      if (!IsStored(parameter)) continue;
      add(parameter.name, parameter.shape, weight);
      for (const OptimizerState& state :
           OptimizerStates(loaded.spec.training.optimizer, parameter.shape)) {
        add(SlotTensorName(state.slot, parameter.name), state.shape, weight);
      }
    }
  }
  const int all = static_cast<int>(loaded.network->layers.size());
  return WriteShard(files, folder, loaded.partition.LayersOf(loaded.stage.value, all),
                    std::move(tensors));
}

void SimulatedCluster::Profile(
    const StagePeer& peer, const ProfileCommand& command, double,
    std::function<void(absl::StatusOr<std::vector<LayerProfile>>)> done) {
  ++profiles;
  Deliver(peer, done, [this, layers = command.network->layers.size(), done](SimulatedStage& stage) {
    absl::StatusOr<std::vector<LayerProfile>> profile =
        std::vector<LayerProfile>(layers, {0.001, 0.002});
    if (!profile_error.ok()) profile = profile_error;
    KeepBusy(stage, profile_seconds, [done, profile] { done(profile); });
  });
}

// Played stages take none.
void SimulatedCluster::FindSnapshots(
    const StagePeer& peer, const std::string&, const std::string&, double,
    std::function<void(absl::StatusOr<std::vector<HeldShard>>)> done) {
  Deliver(peer, done, [this, done](SimulatedStage&) {
    After(kLatency, [done] { done(std::vector<HeldShard>()); });
  });
}

void SimulatedCluster::Abort(const StagePeer& peer, const Fence& fence, const std::string& reason) {
  aborts.push_back(reason);
  const auto abort = [this, fence](SimulatedStage& stage) {
    if (!stage.loaded || stage.command.fence.job != fence.job ||
        CompareIncarnation(fence, stage.command.fence) < 0) {
      return;
    }
    stage.aborted = true;
    BreakPasses(fence.job, absl::AbortedError("aborted"));
  };
  Deliver(
      peer, [](const absl::Status&) {}, abort);
}

void SimulatedCluster::Release(const StagePeer& peer, const Fence& fence) {
  const auto release = [fence](SimulatedStage& stage) {
    const bool meant =
        stage.command.fence.job == fence.job && CompareIncarnation(fence, stage.command.fence) >= 0;
    if (meant) stage.loaded = false;
  };
  Deliver(
      peer, [](const absl::Status&) {}, release);
}

}  // namespace stagecoach
