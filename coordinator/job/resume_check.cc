#include "coordinator/job/resume_check.h"

#include "absl/strings/str_cat.h"
#include "base/hash.h"

namespace stagecoach {
namespace {

template <typename T>
absl::Status Differs(const char* field, const T& job, const T& checkpoint,
                     const Manifest& manifest) {
  return absl::FailedPreconditionError(absl::StrCat(
      field, "=", job, " but checkpoint ", manifest.job, " at step ", manifest.state.step,
      " was made with ", checkpoint, "; resume with the same value, or start afresh"));
}

}  // namespace

std::string ModelSha256(const ExpandedModel& model) { return Sha256Hex(CanonicalModelText(model)); }

absl::Status CheckResume(const JobDefinition& job, const Manifest& manifest, bool own) {
  const TrainState& state = manifest.state;
  const TrainingSpec& training = job.spec.training;
  if (manifest.model_sha256 != job.model_sha256) {
    return Differs("model (sha256)", job.model_sha256, manifest.model_sha256, manifest);
  }
  if (state.seed != job.spec.seed) return Differs("seed", job.spec.seed, state.seed, manifest);
  if (state.batch_size != training.batch_size) {
    return Differs("training.batch_size", training.batch_size, state.batch_size, manifest);
  }
  if (state.micro_batches != training.micro_batches) {
    return Differs("training.micro_batches", training.micro_batches, state.micro_batches, manifest);
  }
  if (!own && state.step >= static_cast<uint64_t>(training.steps)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "training.steps=", training.steps, " but the checkpoint of resume_job=", manifest.job,
        " is at step ", state.step, " already; ask for more steps or an earlier resume_step"));
  }
  return absl::OkStatus();
}

}  // namespace stagecoach
