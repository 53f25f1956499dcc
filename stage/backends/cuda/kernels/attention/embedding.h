// Rows of tables on the card (operations/attention/embedding.h). T: float or Bf16.
// Errors: an id outside of the vocabulary stops the device (the stream reports a failed launch).
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_ATTENTION_EMBEDDING_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_ATTENTION_EMBEDDING_H_

#include "stage/backends/cuda/kernels.h"

namespace stagecoach::cuda {

struct EmbeddingShape {
  int64_t rows, width, context, vocabulary;
};
// position may be null.
template <typename T>
cudaError_t Embedding(cudaStream_t stream, EmbeddingShape shape, const int32_t* ids, const T* token,
                      const T* position, T* y);
// d_position may be null.
template <typename T>
cudaError_t EmbeddingBackward(cudaStream_t stream, EmbeddingShape shape, const int32_t* ids,
                              const T* dy, float* d_token, float* d_position);

}  // namespace stagecoach::cuda

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_KERNELS_ATTENTION_EMBEDDING_H_
