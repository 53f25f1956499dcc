// Chooses between cuDNN and our own kernels for a convolution. The choice is a pure function of the
// shape, the precision, the card, cuDNN's version and the size of the fixed workspace. So all
// processes on one kind of card choose the same. If cuDNN itself refuses a shape, own kernels take
// it too. That follows from the same inputs.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_CONVOLUTION_CONVOLUTION_CHOICE_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_CONVOLUTION_CONVOLUTION_CHOICE_H_

#include <cstdint>
#include <string>

#include "stage/backends/cuda/cudnn/convolution/convolution_problem.h"
#include "stage/backends/cuda/cudnn/cudnn_offer.h"

namespace stagecoach::cudnn {

// Empty: cuDNN may be used for convolutions on this card.
std::string WhyNoConvolutions(const CudnnOffer& offer);
// Empty: cuDNN is asked; else the reason, for people: "the image has 4294967296 elements".
std::string WhyOwnKernels(const ConvolutionProblem& problem, const CudnnOffer& offer,
                          int64_t workspace_bytes);

}  // namespace stagecoach::cudnn

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_CONVOLUTION_CONVOLUTION_CHOICE_H_
