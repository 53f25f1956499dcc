// RenamedWeights: exported weights in the names and layouts of another program
// (network/names/weight_names.h).
// Threads: any.
// Errors:  DATA_LOSS naming file and tensor: the weights are not those of the network. The file's
//          as services/cli/output/new_file.h.
#ifndef STAGECOACH_SERVICES_CLI_TRAINED_RENAMED_WEIGHTS_H_
#define STAGECOACH_SERVICES_CLI_TRAINED_RENAMED_WEIGHTS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "checkpoint/files/file_system.h"
#include "network/names/weight_names.h"

namespace stagecoach {

// Writes the tensors of `weights_file`, which have our names, into `target`.
absl::Status WriteRenamedWeights(FileSystem& file_system, const std::string& weights_file,
                                 std::vector<WeightName> names, const std::string& target);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_TRAINED_RENAMED_WEIGHTS_H_
