// RenamedWeights: exported weights in the names and layouts of another program
// (network/names/weight_names.h).
// Threads: any.
// Errors:  DATA_LOSS naming file and tensor: the weights are not those of the network.
//          ALREADY_EXISTS: the target is there; or TARGET.unfinished is, which an interrupted command
//          left of a folder. A file's other errors as services/cli/output/new_file.h. What is written
//          is whole or not there.
#ifndef STAGECOACH_SERVICES_CLI_TRAINED_RENAMED_WEIGHTS_H_
#define STAGECOACH_SERVICES_CLI_TRAINED_RENAMED_WEIGHTS_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "checkpoint/files/file_system.h"
#include "network/names/weight_names.h"

namespace stagecoach {

// Writes the tensors of `weights_file`, which have our names, into the file `target`.
absl::Status WriteRenamedWeights(FileSystem& file_system, const std::string& weights_file,
                                 const std::vector<WeightName>& names, const std::string& target);

// A file beside weights, as a configuration.
struct FolderFile {
  std::string name, contents;
};

struct RenamedFolder {
  std::string target;             // not there yet
  std::vector<FolderFile> files;  // beside the weights
  // Bytes of tensors in a shard. A larger tensor is a shard of its own. Hugging Face's default.
  int64_t shard_bytes = 5'000'000'000;
};
// Writes the tensors into a folder: model.safetensors, or shards and the index that names them.
absl::Status WriteRenamedFolder(FileSystem& file_system, const std::string& weights_file,
                                const std::vector<WeightName>& names, const RenamedFolder& folder);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_TRAINED_RENAMED_WEIGHTS_H_
