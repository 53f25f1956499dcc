// Who computes a convolution, cuDNN or our own kernels: a pure function of the shape, the precision,
// the card, cuDNN's version and the size of the fixed workspace, so that all processes on one kind of
// card choose the same. What cuDNN itself refuses then goes to own kernels too; that follows from the
// same.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_CONVOLUTION_CONVOLUTION_CHOICE_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_CONVOLUTION_CONVOLUTION_CHOICE_H_

#include <cstdint>
#include <string>

#include "stage/backends/cuda/cudnn/convolution/convolution_problem.h"
#include "stage/backends/cuda/cudnn/cudnn_offer.h"

namespace stagecoach::cudnn {

// Empty: cuDNN on this card may be used for convolutions at all.
std::string WhyNoConvolutions(const CudnnOffer& offer);
// Empty: cuDNN is asked; else the reason, for people: "the image has 4294967296 elements".
std::string WhyOwnKernels(const ConvolutionProblem& problem, const CudnnOffer& offer,
                          int64_t workspace_bytes);

}  // namespace stagecoach::cudnn

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_CONVOLUTION_CONVOLUTION_CHOICE_H_
