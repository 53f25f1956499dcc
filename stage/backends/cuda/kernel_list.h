// The kernels of the cuda back end, from the files of kernels/.
// An x.cc prepares calls on the host, the x.cu beside it has the kernels and their launches.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_KERNEL_LIST_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_KERNEL_LIST_H_

#include "stage/backends/cuda/kernel_backend.h"
#include "stage/backends/kernel_table.h"

namespace stagecoach::cuda {

using KernelList = KernelListOf<KernelBackend>;
const KernelTable<KernelBackend>& Kernels();

}  // namespace stagecoach::cuda

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_KERNEL_LIST_H_
