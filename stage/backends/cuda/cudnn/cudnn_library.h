// CudnnLibrary: cuDNN loaded while the program runs, so that programs start on machines without it.
// It is looked for as the dynamic linker does: LD_LIBRARY_PATH (a Python wheel's nvidia/cudnn/lib
// is a folder that serves), the system, a toolkit. cuDNN loads its other files from its own folder.
// Ownership: a loaded library stays for as long as the process lives.
// Threads:   thread-safe.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_CUDNN_LIBRARY_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_CUDNN_LIBRARY_H_

#include <string>

#include "absl/status/statusor.h"

namespace stagecoach::cudnn {

struct CudnnLibrary {
  void* handle = nullptr;  // for dlsym
  int version = 0;         // 91900 means 9.19.0
};

// "libcudnn.so.9", or the value of the environment variable STAGECOACH_CUDNN: another file's name
// or path, or "off".
std::string CudnnName();
// UNAVAILABLE: not found, switched off, or none of version 9; the message says what to do.
absl::StatusOr<CudnnLibrary> OpenCudnnLibrary(const std::string& name);

}  // namespace stagecoach::cudnn

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_CUDNN_CUDNN_LIBRARY_H_
