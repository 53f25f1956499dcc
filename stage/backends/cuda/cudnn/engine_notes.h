// The numerical notes of cuDNN's engines, and which engines may compute by them. They are the same
// for every operation but attention, which has one engine for each graph.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_ENGINE_NOTES_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_ENGINE_NOTES_H_

#include <vector>

#include "base/numbers/precision.h"

namespace stagecoach::cudnn {

// What cuDNN says of an engine's numbers.
enum class EngineNote {
  kNondeterministic,      // another order of sums in another run
  kTensorCores,           // of float32: products of TF32
  kDownConvertedInputs,   // of float32: products of half precision
  kReducedPrecisionSums,  // sums in less than float32
  kFourier,               // transforms, which round what they multiply
  kWinograd,              // the same
};
// Engines with one of these are not taken.
std::vector<EngineNote> BarredNotes(Precision precision);

}  // namespace stagecoach::cudnn

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_ENGINE_NOTES_H_
