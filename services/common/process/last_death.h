// LastDeath: one line about a stage's process that ended by a fatal signal, for the next process of
// the stage. A handler writes what the process was doing: to standard error, if that has room, and
// to a file that was opened before. Then the signal acts as without the handler: core dumps, wait
// statuses, a sanitizer's report. SIGKILL leaves no line.
//   signal=SIGSEGV job=a term=1 generation=2 step=12 micro_batch=3
//     instruction=backward operation=linear
// Threads: HandleFatalSignals once, before other threads. LastDeath: one thread at a time.
// Errors:  FAILED_PRECONDITION naming --state-dir. A file that holds something else counts as none.
#ifndef STAGECOACH_SERVICES_COMMON_PROCESS_LAST_DEATH_H_
#define STAGECOACH_SERVICES_COMMON_PROCESS_LAST_DEATH_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/threads/current_work.h"
#include "plan/stage_death.h"

namespace stagecoach {

// "SIGSEGV" of SIGSEGV, and likewise SIGABRT, SIGBUS, SIGILL and SIGFPE; null for all others, which
// are not reported.
const char* FatalSignalName(int number);

// Installs the handler for good. `work` must live for the rest of the process.
void HandleFatalSignals(CurrentWork* work);
CurrentWork* WatchedWork();  // what the handler reads; null: there is no handler

std::optional<StageDeath> ParseDeath(absl::string_view line);
// Death of the process that used this folder last; nullopt: it ended otherwise, or its death was
// reported.
std::optional<StageDeath> ReadDeath(const std::string& folder);

// The folder of a running process; no other process may use it meanwhile
// (services/stage/stage_identity.h).
class LastDeath {
 public:
  static absl::StatusOr<std::unique_ptr<LastDeath>> Open(const std::string& folder);
  ~LastDeath();
  LastDeath(const LastDeath&) = delete;
  LastDeath& operator=(const LastDeath&) = delete;

  const std::optional<StageDeath>& death() const { return death_; }  // of the previous process
  void Told();                                                       // forgets it after the report

 private:
  LastDeath(std::optional<StageDeath> death, int descriptor);
  std::optional<StageDeath> death_;
  const int descriptor_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_PROCESS_LAST_DEATH_H_
