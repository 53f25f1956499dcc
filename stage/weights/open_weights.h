// OpenWeights: opens the weights that `initialize.from` names: a safetensors file, a folder with one,
// or a folder with shards and their index.
// Threads: any.
// Errors:  as WeightFile's (stage/weights/weight_file.h), for weights that cannot be opened. Errors
//          about a checkpoint, or about another program's files, say what to give instead.
#ifndef STAGECOACH_STAGE_WEIGHTS_OPEN_WEIGHTS_H_
#define STAGECOACH_STAGE_WEIGHTS_OPEN_WEIGHTS_H_

#include <string>

#include "absl/status/statusor.h"
#include "checkpoint/weight_shards.h"

namespace stagecoach {

struct OpenedWeights {
  std::string path;  // of the file, or of the folder with its shards
  WeightShards shards;
};
absl::StatusOr<OpenedWeights> OpenWeights(ReadableFiles& files, const std::string& from);

// "initialize.from = \"/a/b.safetensors\"", as errors begin.
std::string FromText(const std::string& path);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_WEIGHTS_OPEN_WEIGHTS_H_
