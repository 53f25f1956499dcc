// Freeze: the same network with some parameters that are not trained. They have no gradient and no
// optimizer. Calls that only their gradients need are not made. So there is no backward at all in
// front of the first layer that trains something.
// Errors: INVALID_ARGUMENT with the pattern's path in the job, what it matches and the remedy.
#ifndef STAGECOACH_NETWORK_PASSES_FREEZE_H_
#define STAGECOACH_NETWORK_PASSES_FREEZE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "network/network.h"

namespace stagecoach {

// `patterns`: of global parameter names (base/files/name_patterns.h). `path`: of that list in the
// job.
absl::StatusOr<Network> Freeze(Network network, const std::vector<std::string>& patterns,
                               const std::string& path);

// The same network with nothing to train: for jobs that write texts.
absl::StatusOr<Network> FreezeAll(Network network);

// FreezeAll, and all parameters are a base (ParameterSpec::Part): in 16 bits no float32 master is kept
// beside them. For processes that take all weights from a file and write no checkpoint.
absl::StatusOr<Network> AsBase(Network network);

// The same network with the gradients that ParameterSpec::trained asks for, and no others: of
// parameters, and of the wires that lead to them.
absl::StatusOr<Network> WithGradientsOfTrained(Network network);

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_PASSES_FREEZE_H_
