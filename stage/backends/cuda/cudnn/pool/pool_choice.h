// Chooses between cuDNN and our own kernels for an average over windows. The choice is a pure
// function of the shape, the card and cuDNN's version. So all processes on one kind of card choose
// the same. An element's gradient may be a sum over several places. The order of that sum is
// promised by operations/images/pool.h and not by cuDNN, so own kernels take such shapes. They take
// all max pools too: pool.h also promises the choice among equals, and how a choice is written.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_POOL_POOL_CHOICE_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_POOL_POOL_CHOICE_H_

#include <string>

#include "stage/backends/cuda/cudnn/cudnn_offer.h"
#include "stage/backends/cuda/cudnn/pool/pool_problem.h"

namespace stagecoach::cudnn {

// Empty: cuDNN may be used for pools on this card.
std::string WhyNoPools(const CudnnOffer& offer);
// Empty: cuDNN is asked; else the reason, for people: "the image has 4294967296 elements".
std::string WhyOwnKernels(const PoolProblem& problem, const CudnnOffer& offer);

}  // namespace stagecoach::cudnn

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_POOL_POOL_CHOICE_H_
