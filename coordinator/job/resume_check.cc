#include "coordinator/job/resume_check.h"

#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/errors/status.h"
#include "base/files/hash.h"
#include "network/names/network_text.h"
#include "plan/job/optimizer_slots.h"

namespace stagecoach {
namespace {

template <typename T>
absl::Status Differs(const char* field, const T& job, const T& checkpoint,
                     const Manifest& manifest) {
  return absl::FailedPreconditionError(absl::StrCat(
      field, "=", job, " but checkpoint ", manifest.job, " at step ", manifest.state.step,
      " was made with ", checkpoint, "; resume with the same value, or start afresh"));
}

std::string SlotsText(const std::vector<std::string>& slots) {
  return slots.empty() ? "no state" : absl::StrCat("state ", absl::StrJoin(slots, " and "));
}

// The optimizer's state of everything that is trained has to be there: a parameter that was frozen
// has none.
absl::Status CheckTrained(const JobDefinition& job, const std::set<std::string>& tensors,
                          bool averages, const Manifest& manifest) {
  TrainingSpec loaded = job.spec.training;
  if (!averages) loaded.average.decay = 0;
  for (const NetworkLayer& layer : job.network.layers) {
    for (const ParameterSpec& parameter : layer.parameters) {
      if (!parameter.trained || parameter.tied()) continue;
      for (const OptimizerState& state : TrainingStates(loaded, parameter.shape)) {
        if (tensors.contains(SlotTensorName(state.slot, parameter.name))) continue;
        return absl::FailedPreconditionError(absl::StrCat(
            "training.freeze: ", parameter.name, " is trained, and was frozen in checkpoint ",
            manifest.job, " at step ", manifest.state.step,
            "; freeze it, or set resume.fresh_optimizer: true to start the optimizer's state "
            "anew"));
      }
    }
  }
  return absl::OkStatus();
}

// Names of all states of the job's optimizer.
std::vector<std::string> WantedSlots(const JobDefinition& job) {
  std::set<std::string> slots;
  for (const NetworkLayer& layer : job.network.layers) {
    for (const ParameterSpec& parameter : layer.parameters) {
      if (!parameter.trained || parameter.tied()) continue;
      for (OptimizerState& state : OptimizerStates(job.spec.training.optimizer, parameter.shape)) {
        slots.insert(std::move(state.slot));
      }
    }
  }
  return {slots.begin(), slots.end()};
}

// What an optimizer keeps is told by the names of the tensors. Its rates may change with a resume.
absl::Status CheckOptimizer(const JobDefinition& job, const Manifest& manifest) {
  std::set<std::string> names, tensors;
  for (const ShardInfo& shard : manifest.shards) {
    for (const ShardTensor& tensor : shard.tensors) {
      names.insert(SlotOfTensor(tensor.entry.name));
      tensors.insert(tensor.entry.name);
    }
  }
  names.erase("");  // parameters
  // One that is not wanted any more is left; one that is wanted now begins with the weights.
  const bool averages = names.erase(kAverageSlot) > 0;
  const std::vector<std::string> found(names.begin(), names.end());
  const std::vector<std::string> wanted = WantedSlots(job);
  if (found == wanted) return CheckTrained(job, tensors, averages, manifest);
  return absl::FailedPreconditionError(absl::StrCat(
      "training.optimizer: ", job.spec.training.optimizer.kind, " keeps ", SlotsText(wanted),
      ", checkpoint ", manifest.job, " at step ", manifest.state.step, " holds ", SlotsText(found),
      "; resume with the optimizer it was made with, or set resume.fresh_optimizer: true to take "
      "the weights alone and start the optimizer's state anew"));
}

}  // namespace

std::string ModelSha256(const Network& network) { return Sha256Hex(CanonicalNetworkText(network)); }

absl::Status CheckResume(const JobDefinition& job, const Manifest& manifest, bool own) {
  const TrainState& state = manifest.state;
  const TrainingSpec& training = job.spec.training;
  if (manifest.model_sha256 != job.model_sha256) {
    return Differs("model (sha256)", job.model_sha256, manifest.model_sha256, manifest);
  }
  if (job.spec.write.has_value()) return absl::OkStatus();
  if (state.seed != job.spec.seed) return Differs("seed", job.spec.seed, state.seed, manifest);
  if (state.batch_size != training.batch_size) {
    return Differs("training.batch_size", training.batch_size, state.batch_size, manifest);
  }
  if (state.micro_batches != training.micro_batches) {
    return Differs("training.micro_batches", training.micro_batches, state.micro_batches, manifest);
  }
  if (!own && !job.spec.resume.fresh_optimizer) RETURN_IF_ERROR(CheckOptimizer(job, manifest));
  // Of a job in epochs the steps are known when its data is loaded.
  if (!own && training.steps > 0 && state.step >= static_cast<uint64_t>(training.steps)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "training.steps=", training.steps, " but the checkpoint of resume_job=", manifest.job,
        " is at step ", state.step, " already; ask for more steps or an earlier resume_step"));
  }
  return absl::OkStatus();
}

}  // namespace stagecoach
