// HiddenPlaces: replaces paths and addresses of the cluster's machines in texts for users. Only
// operators see them. Paths that a job itself names stay. A user sees only its own jobs. So texts
// of jobs that no user owns are for operators, or for everybody if callers have no names. Such
// texts stay unchanged.
// Ownership: a value.  Threads: thread-compatible.
// See:       SECURITY.md, S9.
#ifndef STAGECOACH_COORDINATOR_LOOP_HIDDEN_PLACES_H_
#define STAGECOACH_COORDINATOR_LOOP_HIDDEN_PLACES_H_

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "coordinator/job/job_state.h"

namespace stagecoach {

class HiddenPlaces {
 public:
  // Whether texts of a job are for a user's eyes; owner: JobDefinition::owner.
  static bool Concern(const std::string& owner) { return absl::StartsWith(owner, "user/"); }

  // Whether this transition has such texts.
  static bool Concern(const Transition& transition);

  // A path below the folder is shown with the name in front: "CHECKPOINTS/a/step-000000000003".
  void AddFolder(const std::string& path, const std::string& name);
  // An empty address is ignored.
  void AddAddress(const std::string& address, const std::string& name);

  // Numeric addresses that were not added become "an address".
  std::string Hide(std::string text) const;
  absl::Status Hide(const absl::Status& status) const;
  // In messages: of its records, of the state, and of messages to come.
  void Hide(Transition* transition);

 private:
  std::map<std::string, std::string> folders_, addresses_;  // to names
};

}  // namespace stagecoach

#endif  // STAGECOACH_COORDINATOR_LOOP_HIDDEN_PLACES_H_
