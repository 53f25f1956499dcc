// Resume check: may a job go on from a checkpoint? All fields that decide the bits must agree,
// except the precision: checkpoints are always float32, and users resume to change it. The
// checkpoint must hold the state of the job's kind of optimizer, unless the job starts that anew.
// A job with `write` takes the weights alone: only the model must agree.
// Errors: FAILED_PRECONDITION naming the field, both values and the remedy.
#ifndef STAGECOACH_COORDINATOR_JOB_RESUME_CHECK_H_
#define STAGECOACH_COORDINATOR_JOB_RESUME_CHECK_H_

#include <string>

#include "absl/status/status.h"
#include "checkpoint/manifest.h"
#include "coordinator/job/job_state.h"
#include "network/network.h"

namespace stagecoach {

// SHA-256 of CanonicalNetworkText, as manifests hold it.
std::string ModelSha256(const Network& network);

// own: the checkpoint is this job's own, and may be of its last step.
absl::Status CheckResume(const JobDefinition& job, const Manifest& manifest, bool own);

}  // namespace stagecoach

#endif  // STAGECOACH_COORDINATOR_JOB_RESUME_CHECK_H_
