#include "coordinator/job/load_check.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/errors/status.h"
#include "coordinator/job/weights_check.h"
#include "network/passes/lora.h"
#include "plan/job/data_kinds.h"
#include "plan/job/epochs.h"

namespace stagecoach {
namespace {

absl::Status CheckFingerprints(const JobState& state, const std::string& loaded) {
  const std::string& began = state.found.fingerprint;
  if (state.job->spec.pipeline.mixed_devices) {
    if (began.empty() || loaded == began) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat(
        "the devices of a job must stay in their places: it began with \"", began,
        "\", now the stages have \"", loaded, "\"; bring the devices back under their names"));
  }
  for (const StageSlot& slot : state.slots) {
    const StageSlot& first = state.slots.front();
    if (slot.loaded.fingerprint != first.loaded.fingerprint) {
      return absl::FailedPreconditionError(absl::StrCat(
          "stages of one job must compute alike: ", first.stage.name, " has fingerprint \"",
          first.loaded.fingerprint, "\", ", slot.stage.name, " has \"", slot.loaded.fingerprint,
          "\"; give the job stages of one kind, or set pipeline.mixed_devices"));
    }
    if (!began.empty() && slot.loaded.fingerprint != began) {
      return absl::FailedPreconditionError(
          absl::StrCat("stages of one job must compute alike: it began with fingerprint \"", began,
                       "\", ", slot.stage.name, " has \"", slot.loaded.fingerprint, "\""));
    }
  }
  return absl::OkStatus();
}

// The stages that read: the first one, the last one, and any other with a digest.
absl::Status CheckData(const JobState& state) {
  const JobSpec& spec = state.job->spec;
  const StageSlot& first = state.slots.front();
  const std::string& read = first.loaded.data.sha256;
  const auto differ = [&spec](const std::string& who, const std::string& a, const std::string& b) {
    return absl::FailedPreconditionError(absl::StrCat(DataFilesText(spec.data), ": ", who,
                                                      ": sha256 ", a, " and ", b,
                                                      "; use the same files everywhere"));
  };
  for (const StageSlot& slot : state.slots) {
    const std::string& other = slot.loaded.data.sha256;
    const bool reads = !other.empty() || &slot == &state.slots[SlotOfLastCell(state)];
    if (!reads || other == read) continue;
    return differ(
        absl::StrCat(first.stage.name, " and ", slot.stage.name, " read different data sets"), read,
        other);
  }
  const std::string& began = state.found.data.sha256;
  if (!began.empty() && read != began) {
    return differ("the data set changed since the job began", began, read);
  }
  const std::string& resumed = state.origin.data_sha256;
  if (!resumed.empty() && read != resumed) {
    return differ(absl::StrCat("the data set is not the one of resume_job=", spec.resume.job),
                  resumed, read);
  }
  return absl::OkStatus();
}

// If a stage reads labels alone, it has measured nothing. All that list the classes list the same.
DataFacts FactsOf(const std::vector<StageSlot>& slots) {
  DataFacts facts;
  for (const StageSlot& slot : slots) {
    const DataFacts& found = slot.loaded.facts;
    if (!found.classes.empty()) facts.classes = found.classes;
    if (found.mean.empty()) continue;
    facts.mean = found.mean;
    facts.deviation = found.deviation;
  }
  return facts;
}

// What users should know of their data. Stages that read the same find the same.
void AddDataNotes(const std::vector<StageSlot>& slots, std::vector<std::string>* notes) {
  for (const StageSlot& slot : slots) {
    for (const std::string& note : slot.loaded.data_notes) {
      if (std::find(notes->begin(), notes->end(), note) == notes->end()) notes->push_back(note);
    }
  }
}

// What the data set tells of a job that counts in epochs.
absl::Status CheckSteps(const JobState& state) {
  const JobSpec& spec = state.job->spec;
  if (spec.write.has_value()) return absl::OkStatus();
  RETURN_IF_ERROR(CheckEpochs(spec, state.found.data.train_samples));
  if (state.step < LastStep(state)) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("training.epochs=", spec.training.epochs, " are ", LastStep(state),
                   " steps, and the job begins at step ", state.step,
                   " already; ask for more epochs or an earlier resume_step"));
}

}  // namespace

absl::Status CheckLoad(JobState* state, std::vector<std::string>* notes) {
  const JobSpec& spec = state->job->spec;
  const LoadResult& first = state->slots.front().loaded;
  LoadFindings& found = state->found;
  std::string fingerprint = first.fingerprint;
  if (spec.pipeline.mixed_devices) {
    fingerprint = absl::StrJoin(state->slots, " | ", [](std::string* out, const StageSlot& slot) {
      out->append(slot.loaded.fingerprint);
    });
  }
  RETURN_IF_ERROR(CheckFingerprints(*state, fingerprint));
  RETURN_IF_ERROR(CheckData(*state));
  if (found.data.sha256.empty()) AddDataNotes(state->slots, notes);
  found.data = first.data;
  found.facts = FactsOf(state->slots);
  for (const StageSlot& slot : state->slots) state->evaluation.held_out.Loaded(slot.loaded);
  if (HasBase(state->job->network) || !first.weights.header_sha256.empty()) {
    ASSIGN_OR_RETURN(WeightsManifest weights, CheckWeights(*state));
    if (found.weights.sha256.empty()) {
      notes->push_back(absl::StrCat("begins with the weights of ", spec.initialize.from));
    }
    found.weights = std::move(weights);
    // The state is copied with every event, and the lists of tensors are long.
    for (StageSlot& slot : state->slots) slot.loaded.weights = {};
  }
  RETURN_IF_ERROR(CheckSteps(*state));
  found.fingerprint = std::move(fingerprint);
  return absl::OkStatus();
}

}  // namespace stagecoach
