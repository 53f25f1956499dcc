// The numerical notes of cuDNN's engines, and those that bar an engine. They are the same for every
// operation but attention, which has one engine for each graph.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_ENGINE_NOTES_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_ENGINE_NOTES_H_

#include <vector>

#include "base/numbers/precision.h"

namespace stagecoach::cudnn {

// A property of an engine's numbers, as cuDNN tells it.
enum class EngineNote {
  kNondeterministic,      // another order of sums in another run
  kTensorCores,           // float32 computed by products of TF32
  kDownConvertedInputs,   // float32 computed by products of half precision
  kReducedPrecisionSums,  // sums in less than float32
  kFourier,               // transforms, which round the factors
  kWinograd,              // the same
};
// Engines with one of these are not taken.
std::vector<EngineNote> BarredNotes(Precision precision);

}  // namespace stagecoach::cudnn

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_ENGINE_NOTES_H_
