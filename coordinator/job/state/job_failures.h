// JobFailures: how often a job failed for reasons of its stages, so that it ends in time. The
// journal has the counts of steps and of deaths.
#ifndef STAGECOACH_COORDINATOR_JOB_STATE_JOB_FAILURES_H_
#define STAGECOACH_COORDINATOR_JOB_STATE_JOB_FAILURES_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/ids.h"

namespace stagecoach {

// Failures of one step for reasons of the stages' own, and the stages that failed.
struct StepFailures {
  int64_t count = 0;
  std::set<std::string> stages;  // names
};

// Deaths of stages' processes by a signal of their own: in a row, at one step and instruction, with
// no later step finished since.
struct StageDeaths {
  int64_t count = 0;
  uint64_t step = 0;
  std::string instruction;
  std::set<std::string> stages;  // names
  // Of the newest: a generation counts once, however many stages it lost.
  uint64_t term = 0, generation = 0;
};

// The generation before: an answer may still come from there.
struct FormerGeneration {
  Fence fence;
  std::vector<std::string> stages;  // names, by place
};

struct JobFailures {
  std::map<uint64_t, StepFailures> steps;  // since the furthest step was reached
  StageDeaths deaths;
  // With `write`: how far any try of the mini-batch at hand came (job_write.cc). Not in the
  // journal: a restarted coordinator forgets earlier failures when the mini-batch first gets on.
  int64_t furthest_written = 0;
  int64_t loads = 0;                // of stages' own, since the last load that worked
  int64_t setbacks = 0;             // recoveries since it last got on
  uint64_t counted_generation = 0;  // the last one whose failure was counted
  FormerGeneration former;
};

}  // namespace stagecoach

#endif  // STAGECOACH_COORDINATOR_JOB_STATE_JOB_FAILURES_H_
