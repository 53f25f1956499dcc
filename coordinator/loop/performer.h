// Performer: carries out what Apply asked for. Every answer becomes an event of the job, stamped
// with the time it came in.
// Ownership: borrows; lives for one delivery.
// Threads:   the job loop's; answers go through the inbox.
#ifndef STAGECOACH_COORDINATOR_LOOP_PERFORMER_H_
#define STAGECOACH_COORDINATOR_LOOP_PERFORMER_H_

#include <functional>
#include <string>
#include <vector>

#include "coordinator/loop/job_loop.h"

namespace stagecoach {

JobLimits LimitsOf(const JobManagerOptions& options);

// Where answers arrive, from any thread, also long after the loop is gone: only work that `post`
// accepted touches the loop.
struct JobLoop::Inbox {
  JobLoop* loop;
  const Clock* clock;
  std::function<void(Work)> post;
  template <typename Kind>
  void Add(const std::string& job, Kind kind) const;
};

class JobLoop::Performer {
 public:
  Performer(JobLoop& loop, const Job& job) : loop_(loop), job_(job) {}

  void operator()(const ProbeFolder& action) const;
  void operator()(const CheckFolder& action) const;
  void operator()(const SendLoad& action) const;
  void operator()(const SendRun& action) const;
  void operator()(const SendWriteShard& action) const;
  void operator()(const SendFindSnapshots& action) const;
  void operator()(const SendProfile& action) const;
  void operator()(const MakeJobPlan& action) const;
  void operator()(const SendAbort& action) const;
  void operator()(const SendRelease& action) const;
  void operator()(const DoubtStage& action) const;
  void operator()(const NoteFolder& action) const;
  void operator()(const SearchCheckpoint& action) const;
  void operator()(const BeginCheckpoint& action) const;
  void operator()(const CommitCheckpoint& action) const;
  void operator()(const AbandonCheckpoint& action) const;
  void operator()(const ExportCheckpoint& action) const;

 private:
  StageClient& stages() const { return *loop_.parts_.outside.stages; }
  CheckpointStore* store() const { return loop_.parts_.outside.checkpoints; }
  const std::string& id() const { return job_.state.job->id; }
  // Runs `call` on the effects thread of the job with this number; its result becomes an event of
  // this job.
  template <typename Call>
  void Effect(uint64_t number, Call call) const;
  template <typename Kind>
  auto Answer(const Fence& fence, int stage) const;
  uint64_t number() const { return job_.state.job->sequence; }

  JobLoop& loop_;
  const Job& job_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_COORDINATOR_LOOP_PERFORMER_H_
