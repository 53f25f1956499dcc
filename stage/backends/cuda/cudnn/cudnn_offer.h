// CudnnOffer: a machine's cuDNN and card. Functions that read cuDNN's messages.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_CUDNN_OFFER_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_CUDNN_OFFER_H_

#include <string>

namespace stagecoach::cudnn {

struct CudnnOffer {
  int version = 0;             // from cudnnGetVersion: 91900 means 9.19.0
  int compute_capability = 0;  // 90 means 9.0
};

std::string VersionText(int version);  // "9.19.0"

// Reads cuDNN's message when it makes no plan. True if no engine takes the graph. False if
// something is missing or broken on this machine, which own kernels must not hide.
bool RefusesTheGraph(const std::string& message);
// True if cuDNN was refused memory, of the card or of its host: another job may have enough.
bool LacksMemory(const std::string& message);

}  // namespace stagecoach::cudnn

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_CUDNN_OFFER_H_
