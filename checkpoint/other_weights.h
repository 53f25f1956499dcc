// Finds weights of other programs in a folder without exported weights.
// Threads: any.
#ifndef STAGECOACH_CHECKPOINT_OTHER_WEIGHTS_H_
#define STAGECOACH_CHECKPOINT_OTHER_WEIGHTS_H_

#include <string>

#include "checkpoint/files/file_system.h"

namespace stagecoach {

// "holds weights of Flax (flax_model.msgpack); write them as safetensors (docs/formats.md says
// how)"; empty: no known file of another program.
std::string OtherWeightsIn(ReadableFiles& files, const std::string& folder);

}  // namespace stagecoach

#endif  // STAGECOACH_CHECKPOINT_OTHER_WEIGHTS_H_
