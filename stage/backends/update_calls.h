// PreparedUpdates: the calls of an update (operations/updates/update.h), one a parameter, as one kernel.
// Ownership: holds the tensors; borrows the back end.
// Threads:   executor thread only.
// Errors:    Prepare answers the kernel table's: UNIMPLEMENTED naming operation and back end.
//            CHECKs that the operation takes these tensors.
#ifndef STAGECOACH_STAGE_BACKENDS_UPDATE_CALLS_H_
#define STAGECOACH_STAGE_BACKENDS_UPDATE_CALLS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "stage/backends/backend.h"

namespace stagecoach {

struct UpdateCall {
  std::string operation;
  Attributes attributes = {};
  Tensors inputs = {}, adds;
};

class PreparedUpdates {
 public:
  // All calls are of one operation; none: nothing is prepared.
  static absl::StatusOr<PreparedUpdates> Prepare(Backend& backend, std::vector<UpdateCall> calls);
  PreparedUpdates(PreparedUpdates&&) = default;
  PreparedUpdates& operator=(PreparedUpdates&&) = delete;

  void Run(const UpdateNumbers& numbers) const;

 private:
  explicit PreparedUpdates(std::vector<UpdateCall> calls);

  std::vector<UpdateCall> calls_;
  std::vector<Operands> inputs_, outputs_, adds_;
  std::vector<KernelArguments> arguments_;  // of the operands above
  KernelOfAll kernel_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_BACKENDS_UPDATE_CALLS_H_
