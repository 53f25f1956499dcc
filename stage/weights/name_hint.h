// NameHint: a likely cause if hardly a tensor of a file has a name that a job wants. The names may
// be those of another table, or have a prefix, as DistributedDataParallel's "module.".
// Threads: pure function.
#ifndef STAGECOACH_STAGE_WEIGHTS_NAME_HINT_H_
#define STAGECOACH_STAGE_WEIGHTS_NAME_HINT_H_

#include <span>
#include <string>

#include "checkpoint/safetensors/safetensors.h"
#include "network/network.h"

namespace stagecoach {

// table: the job's name for the file's table of names (network/names/weight_names.h). Returns empty
// if there is no hint.
std::string NameHint(std::span<const TensorEntry> tensors, const Network& network,
                     const std::string& table);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_WEIGHTS_NAME_HINT_H_
