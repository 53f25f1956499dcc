// StageIdentity: an id that a restarted process of a stage shares with the one before it, and with
// no other living process. With it the coordinator lets a stage take its own name back at once,
// also after kill -9. It refuses everybody else while the holder of the name lives
// (coordinator/fleet).
//   - With a state folder: a random id in <folder>/identity, held by one process at a time.
//   - Without: this machine's network and the listening port, which one process at a time can have.
//     A process with port 0 has an identity of its own.
// The machine's start is a part of both: a copied folder is another identity elsewhere.
// Ownership: holds the lock on the file for its life; the kernel drops it with the process.
// Threads:   immutable.
// Errors:    Make: FAILED_PRECONDITION naming --state-dir. A file that another process holds is no
//            error: the coordinator then says which process has the name.
#ifndef STAGECOACH_SERVICES_STAGE_STAGE_IDENTITY_H_
#define STAGECOACH_SERVICES_STAGE_STAGE_IDENTITY_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace stagecoach {

// Fields are empty if the kernel does not tell.
struct Machine {
  std::string boot;     // random per start of the machine
  std::string network;  // of this process: two containers on one machine have two
};
Machine ThisMachine();
std::string HostName();  // "localhost" if there is none

class StageIdentity {
 public:
  // `listen`: host:port as in the flag; empty for port 0.
  static absl::StatusOr<std::unique_ptr<StageIdentity>> Make(const std::string& state_folder,
                                                             const Machine& machine,
                                                             const std::string& listen);
  ~StageIdentity();
  StageIdentity(const StageIdentity&) = delete;
  StageIdentity& operator=(const StageIdentity&) = delete;

  const std::string& text() const { return text_; }       // does not reveal its sources
  bool holds_folder() const { return descriptor_ >= 0; }  // no other process has it

 private:
  StageIdentity(const std::string& source, int descriptor);
  const std::string text_;
  const int descriptor_;  // -1: no file
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_STAGE_STAGE_IDENTITY_H_
