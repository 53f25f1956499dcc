// JobScript: drives Apply by lines of text and tells what came out, for transcripts and for tests
// that need a job in a certain state. Nothing but the pure transition function runs.
//
//   job stages=2 steps=4 checkpoint=2 evaluation=0 partition=uniform   a new job, not opened; with
//                  probe=1 the question about the checkpoint folder is not answered by itself
//                  in epochs, of 10 samples in batches of 4: job epochs=2 each=1
//                  until=2 ends it by a loss of 2; iou=0.3 ends it by that mean_iou
//                  average=1: evaluations are of the averages of the weights too
//                  classes=1: classes are counted, of which reports tell
//                  translate=1: an evaluation translates so many mini-batches; 0: all; bleu=60 ends
//                  it
//                  write=6: it writes 6 lines, in mini-batches of 4
//                  tick=0.03: seconds between events, in place of 0.125
//   open | restart term=2 | term 7 | offer a:1 b:1 | short needed=2 ready=1 alive=1 | lost a 1
//   short needed=2 ready=1 alive=1 a:1   the stages that are ready
//   died a SIGSEGV generation=1 step=0 instruction=forward   as the next process of a tells; term=1
//   found step=2 | found none | found error | found away | found unmounted
//   job hold=1             plans wait for `planned`; else they are made at once
//   job snapshots=2        with snapshots every 2 steps, whole with the report of that step;
//                          stay=1: never whole; snapshots=auto, with cost=0.2 seconds each
//   held 0 2:0-3 2:3-5     stage 0 has these shards in memory: step 2, layers 0 to 2, and so on
//   held 0 old
//   probed [CODE] | checked [fault=1] | loaded 0 folder=CODE
//   profiled | profiled error | loaded 0 | loaded 1 INVALID_ARGUMENT
//   reported 0 [nan | otherwise | uncounted | CODE] | begun | begun RESOURCE_EXHAUSTED
//   shard 0 [CODE] | committed [CODE] | exported [CODE]
//   reported 1 [over | done | silent | end | stray]   of a job that writes. A report has two more
//                  bytes. over: all texts are done, and with them the mini-batch; done: all texts
//                  are; silent: no bytes; end: none, and it is over; stray: of a line that is not
//                  of the mini-batch
//   all            the answers of all stages to the operation at hand; "all over": the last stage's
//   wait 5         time passes; the deadline, if it was reached, is told
//   moves b        a heartbeat of stage b tells of progress; "moves effect": file work advances
//   reported 0 copied   to a flush: the stage has copied its shard for a checkpoint beside the steps
//   all copied | all shards   all stages; shards: of the checkpoint beside the steps
//   writes b       a heartbeat of stage b tells that it gets on with its shard beside the steps
//   cancel | stale (the next line's fence is of an older attempt)
#ifndef STAGECOACH_COORDINATOR_JOB_JOB_SCRIPT_TESTING_H_
#define STAGECOACH_COORDINATOR_JOB_JOB_SCRIPT_TESTING_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/job/job_state.h"

namespace stagecoach {

class JobScript {
 public:
  // Effects of the line: the state if it changed, records, actions; "" for an empty line.
  std::string Run(const std::string& line);
  const JobState& state() const { return *state_; }
  bool has_job() const { return state_.has_value(); }
  double now() const { return now_; }
  std::string Apply(const decltype(JobEvent::kind)& kind);

 private:
  using Words = std::vector<std::string>;
  void NewJob(const Words& words);
  std::string All(const std::string& how);
  std::vector<WrittenPiece> Pieces(const std::string& how);
  HeldShard HeldShardOf(uint64_t step, int first, int last) const;
  Fence EventFence();
  Fence EventFence(Fence fence);
  Fence WriteFence();
  void AnswerProbe(Transition* transition) const;

  std::optional<JobState> state_;
  bool hold_plans_ = false;
  std::optional<MakeJobPlan> held_plan_;
  double now_ = 0, tick_ = 0.125;
  int64_t written_ = 0;  // bytes of the mini-batch at hand
  DeadlinePassed signs_;
  bool stale_ = false, late_ = false;
  bool tells_folder_ = false;
  bool snapshots_stay_ = false;
  double snapshot_cost_ = 0;
};

// A state as one line of a transcript.
std::string StateText(const JobState& state);

}  // namespace stagecoach

#endif  // STAGECOACH_COORDINATOR_JOB_JOB_SCRIPT_TESTING_H_
