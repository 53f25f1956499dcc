// StageMailbox: messages of other threads to the executor thread. Commands come in order; aborts,
// wake-ups of links, and the end come at once.
// Ownership: owns a command from a successful Post to Next.
// Threads:   Next, WaitForChange, Interruption and Drain on the executor thread; the rest from any
//            thread. One mutex guards everything; no callback runs under it.
// Errors:    Post refuses when full or closed, and new work while draining; it leaves the command
//            with the caller. Post and Abort refuse a term above the coordinator's own as
//            UNAVAILABLE.
#ifndef STAGECOACH_STAGE_RUNTIME_STAGE_MAILBOX_H_
#define STAGECOACH_STAGE_RUNTIME_STAGE_MAILBOX_H_

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "checkpoint/shard.h"
#include "plan/control.h"

namespace stagecoach {

struct LoadRequest {
  LoadCommand command;
  std::function<void(absl::StatusOr<LoadResult>)> done;
};
struct RunRequest {
  RunCommand command;
  std::function<void(absl::StatusOr<StepReport>)> done;
};
struct WriteShardRequest {
  WriteShardCommand command;
  std::function<void(absl::StatusOr<ShardInfo>)> done;
};
struct ReleaseRequest {
  Fence fence;
  std::function<void(absl::Status)> done;
};
struct ProfileRequest {
  ProfileCommand command;
  std::function<void(absl::StatusOr<std::vector<LayerProfile>>)> done;
};
using StageRequest =
    std::variant<LoadRequest, RunRequest, WriteShardRequest, ReleaseRequest, ProfileRequest>;

// Answers a request that will not be carried out.
void Refuse(StageRequest& request, const absl::Status& status);

class StageMailbox {
 public:
  explicit StageMailbox(size_t capacity) : capacity_(capacity) {}

  [[nodiscard]] absl::Status Post(StageRequest&& request);
  absl::Status Abort(const Fence& fence, const absl::Status& reason);
  // The coordinator itself has told this stage its term; usually that comes before its commands.
  // Calls with a term above the highest known are refused: one call with 2^64 - 1 would shut the
  // coordinator out for good. Before the first KnowTerm, any term is accepted.
  void KnowTerm(uint64_t term);
  void Wake();
  void Close();

  // From now on Load, Profile and the Run of a program are refused as UNAVAILABLE. Queued commands,
  // decisions alone, shards, aborts and releases go on.
  void StartDraining();
  bool draining() const;
  using Deadline = std::chrono::steady_clock::time_point;
  // Waits until the executor waits in Next with nothing to do. Returns the number of returns of
  // Next so far; nothing: not by the deadline.
  std::optional<uint64_t> WaitAtRest(Deadline deadline);
  // Waits until Next has returned more than `returns` times; false: not by the deadline.
  bool WaitStirred(uint64_t returns, Deadline deadline);
  // No more commands can come: from now on both waits end at once, as at their deadline.
  void EndDraining();

  bool closed() const;
  uint64_t newest_term() const;  // of the loads and aborts so far; 0: there was none
  // Whether Next would not wait: for a thread that takes turns with several stages.
  bool HasWork() const;
  // Waits for a command; nothing: there is an abort to handle, or Close was called.
  std::optional<StageRequest> Next();
  // Waits until there was a message since the last call, at most for `timeout`.
  void WaitForChange(std::chrono::nanoseconds timeout);
  // The reason why work on the cell loaded under this fence must end now: an abort, a Load that
  // replaces the cell, a Release of it, or the end. Ok: go on.
  absl::Status Interruption(const Fence& loaded) const;
  // Not ok if the last abort was of this incarnation or a later one.
  absl::Status AbortOf(const Fence& fence) const;
  std::vector<StageRequest> Drain();  // commands left after Close

 private:
  struct AbortNotice {
    Fence fence;
    absl::Status reason;
  };
  absl::Status AbortOfLocked(const Fence& fence) const;
  absl::Status CheckTermLocked(const Fence& fence) const;
  bool HasWorkLocked() const { return closed_ || abort_unseen_ || !requests_.empty(); }

  const size_t capacity_;
  mutable std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  std::deque<StageRequest> requests_;
  uint64_t newest_term_ = 0;
  uint64_t known_term_ = 0;
  std::optional<AbortNotice> abort_;
  bool abort_unseen_ = false;
  bool woken_ = false;
  bool closed_ = false;
  bool draining_ = false;
  bool drain_ended_ = false;
  bool at_rest_ = false;  // the executor waits in Next
  uint64_t returns_ = 0;  // number of returns of Next
  std::condition_variable rest_changed_;
};

// True if a cell loaded under `loaded` makes way for a Load with this fence. The Load is of a newer
// incarnation of the job, or of another job by a coordinator that is not older. Generations of two
// jobs do not compare.
bool Supersedes(const Fence& fence, const Fence& loaded);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_RUNTIME_STAGE_MAILBOX_H_
