// Who computes attention, cuDNN or our own kernels: a pure function of the shape, the card and
// cuDNN's version, so that forward and backward of a shape always agree and a machine always
// chooses the same. Own kernels take what cuDNN refuses, what is not bit for bit repeatable there,
// what is known to go wrong there, and whatever has dropout: which elements are dropped is promised
// by base/random.h.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_ATTENTION_ATTENTION_CHOICE_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_ATTENTION_ATTENTION_CHOICE_H_

#include <string>

#include "base/dtype.h"
#include "stage/backends/backend.h"
#include "stage/backends/cuda/cudnn/cudnn_offer.h"

namespace stagecoach::cudnn {

// Empty: cuDNN on this card may be used at all.
std::string WhyNotOnThisCard(const CudnnOffer& offer);
// Empty: cuDNN takes it; else the reason, for people: "the context, 100, is no multiple of 128".
std::string WhyOwnKernels(const AttentionShape& shape, DType dtype, const CudnnOffer& offer);

}  // namespace stagecoach::cudnn

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_ATTENTION_ATTENTION_CHOICE_H_
