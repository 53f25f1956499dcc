// StateNotes: notes each change of a followed job's state.
// Threads:   the following thread.
#ifndef STAGECOACH_SERVICES_CLI_OUTPUT_STATE_NOTES_H_
#define STAGECOACH_SERVICES_CLI_OUTPUT_STATE_NOTES_H_

#include <string>

#include "services/cli/output/console.h"
#include "stagecoach/v1/job.pb.h"

namespace stagecoach {

class StateNotes {
 public:
  explicit StateNotes(Console* console) : console_(console) {}
  // Notes "job is submitted: waits for 2 stages, 0 are ready" unless it is the last note again. The
  // message counts: a job that waits stays in its state while the number of ready stages changes.
  void Show(const v1::StateRecord& state);

 private:
  Console* const console_;
  std::string shown_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_OUTPUT_STATE_NOTES_H_
