// Chooses between cuDNN and our own kernels for attention. The choice is a pure function of the
// shape, the card and cuDNN's version. So forward and backward of a shape always agree, and a
// machine always chooses the same. Own kernels take shapes that cuDNN refuses, that are not bit for
// bit repeatable there, or that are known to go wrong there. They also take every shape with
// dropout: base/numbers/random.h promises which elements are dropped.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_ATTENTION_ATTENTION_CHOICE_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_ATTENTION_ATTENTION_CHOICE_H_

#include <string>

#include "base/numbers/dtype.h"
#include "stage/backends/attention_shape.h"
#include "stage/backends/cuda/cudnn/cudnn_offer.h"

namespace stagecoach::cudnn {

// Empty: cuDNN may be used on this card.
std::string WhyNotOnThisCard(const CudnnOffer& offer);
// Empty: cuDNN takes it; else the reason, for people: "the context, 100, is no multiple of 128".
std::string WhyOwnKernels(const AttentionShape& shape, DType dtype, const CudnnOffer& offer);

}  // namespace stagecoach::cudnn

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_ATTENTION_ATTENTION_CHOICE_H_
