// NameHint: a likely cause if hardly a tensor of a file has a name that a job wants. The names may
// be those of another table. They may stand behind a prefix, as DistributedDataParallel's
// "module.".
// Threads: pure function.
#ifndef STAGECOACH_STAGE_WEIGHTS_NAME_HINT_H_
#define STAGECOACH_STAGE_WEIGHTS_NAME_HINT_H_

#include <span>
#include <string>

#include "checkpoint/safetensors/safetensors.h"
#include "network/network.h"

namespace stagecoach {

// table: how the job says that the file's tensors are named (network/names/weight_names.h). Empty:
// nothing to say.
std::string NameHint(std::span<const TensorEntry> tensors, const Network& network,
                     const std::string& table);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_WEIGHTS_NAME_HINT_H_
