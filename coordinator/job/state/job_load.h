// What a job loads: where it began (JobOrigin), the weights of the next load (LoadSource), and what
// the first load found, which every later one must find again (LoadFindings).
#ifndef STAGECOACH_COORDINATOR_JOB_STATE_JOB_LOAD_H_
#define STAGECOACH_COORDINATOR_JOB_STATE_JOB_LOAD_H_

#include <cstdint>
#include <string>
#include <vector>

#include "checkpoint/snapshot.h"
#include "plan/control.h"

namespace stagecoach {

struct JobOrigin {
  bool searches_own = false;  // or the checkpoint of spec.resume.job
  // Step of spec.resume.job at which this job begins. It is chosen once, so that a recovery before
  // the first own checkpoint begins with the same bits. -1: not chosen yet, the newest will be.
  int64_t resume_step = -1;
  uint64_t applied_steps = 0;  // of the job that this one resumed
  std::string data_sha256;     // of that job's checkpoint
};

// A new generation resets it. Neither folder nor manifest: initial weights.
struct LoadSource {
  std::string folder;            // of a checkpoint
  bool fresh_optimizer = false;  // the weights only
  std::string manifest;          // of a snapshot in the memory of stages
  std::vector<SnapshotPlan::Holder> holders;

  bool trained() const { return !folder.empty() || !manifest.empty(); }
};

struct LoadFindings {
  std::string fingerprint;  // of the stages; empty: the job has not run yet
  DatasetManifest data;     // sha256 empty: not known yet
  DataFacts facts;          // of the last load
  WeightsManifest weights;  // of spec.initialize; sha256 empty: not known yet
};

}  // namespace stagecoach

#endif  // STAGECOACH_COORDINATOR_JOB_STATE_JOB_LOAD_H_
