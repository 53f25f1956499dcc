// Who computes an average over windows, cuDNN or our own kernels: a pure function of the shape, the card
// and cuDNN's version, so that all processes on one kind of card choose the same. Own kernels take what
// operations/pool.h promises and cuDNN does not: the order in which a gradient sums what an element gets
// from several places. Max pools are theirs altogether: which of equals is chosen, and what a choice is
// written as, is promised too.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_POOL_POOL_CHOICE_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_POOL_POOL_CHOICE_H_

#include <string>

#include "stage/backends/cuda/cudnn/cudnn_offer.h"
#include "stage/backends/cuda/cudnn/pool/pool_problem.h"

namespace stagecoach::cudnn {

// Empty: cuDNN on this card may be used for pools at all.
std::string WhyNoPools(const CudnnOffer& offer);
// Empty: cuDNN is asked; else the reason, for people: "the image has 4294967296 elements".
std::string WhyOwnKernels(const PoolProblem& problem, const CudnnOffer& offer);

}  // namespace stagecoach::cudnn

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_POOL_POOL_CHOICE_H_
