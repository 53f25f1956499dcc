// Who computes a convolution, cuDNN or our own kernels, and which of cuDNN's engines may: pure
// functions of the shape, the precision, the card, cuDNN's version and the size of the fixed
// workspace, so that all processes on one kind of card choose the same. What cuDNN itself refuses
// then goes to own kernels too; that follows from the same.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_CONVOLUTION_CHOICE_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_CONVOLUTION_CHOICE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/precision.h"
#include "stage/backends/cuda/cudnn/attention_choice.h"
#include "stage/backends/cuda/cudnn/convolution_problem.h"

namespace stagecoach::cudnn {

// Empty: cuDNN on this card may be used for convolutions at all.
std::string WhyNoConvolutions(const CudnnOffer& offer);
// Empty: cuDNN is asked; else the reason, for people: "the image has 4294967296 elements".
std::string WhyOwnKernels(const ConvolutionProblem& problem, const CudnnOffer& offer,
                          int64_t workspace_bytes);

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

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_CONVOLUTION_CHOICE_H_
