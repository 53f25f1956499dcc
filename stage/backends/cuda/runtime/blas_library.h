// BlasLibrary: cuBLASLt, loaded while a program runs and only if it uses a card.
// Ownership: the library stays loaded until the process ends.
// Threads:   any.
// Errors:    UNAVAILABLE with the missing file, the loader's error, and the remedy.
//
// It is not linked because it has 94 KB of thread-local storage. The loader would take that from
// the stack of every thread. Some libraries, as civetweb, give their threads 100 KB and could start
// none. A library that is loaded later has its storage on the heap.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_RUNTIME_BLAS_LIBRARY_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_RUNTIME_BLAS_LIBRARY_H_

#include <cublasLt.h>

#include <string>

#include "absl/status/statusor.h"

namespace stagecoach::cuda {

// The functions of cublasLt.h that products need, under their names there.
struct BlasLibrary {
  decltype(&cublasLtGetVersion) GetVersion = nullptr;
  decltype(&cublasLtGetStatusName) GetStatusName = nullptr;
  decltype(&cublasLtGetStatusString) GetStatusString = nullptr;
  decltype(&cublasLtCreate) Create = nullptr;
  decltype(&cublasLtDestroy) Destroy = nullptr;
  decltype(&cublasLtMatrixLayoutCreate) MatrixLayoutCreate = nullptr;
  decltype(&cublasLtMatrixLayoutDestroy) MatrixLayoutDestroy = nullptr;
  decltype(&cublasLtMatmulDescCreate) MatmulDescCreate = nullptr;
  decltype(&cublasLtMatmulDescDestroy) MatmulDescDestroy = nullptr;
  decltype(&cublasLtMatmulDescSetAttribute) MatmulDescSetAttribute = nullptr;
  decltype(&cublasLtMatmulPreferenceCreate) MatmulPreferenceCreate = nullptr;
  decltype(&cublasLtMatmulPreferenceDestroy) MatmulPreferenceDestroy = nullptr;
  decltype(&cublasLtMatmulPreferenceSetAttribute) MatmulPreferenceSetAttribute = nullptr;
  decltype(&cublasLtMatmulAlgoGetHeuristic) MatmulAlgoGetHeuristic = nullptr;
  decltype(&cublasLtMatmulAlgoConfigGetAttribute) MatmulAlgoConfigGetAttribute = nullptr;
  decltype(&cublasLtMatmul) Matmul = nullptr;
};

// "libcublasLt.so.13", with the major version at compile time.
std::string BlasLibraryName();

// `name`: a file's name for the loader, or a path.
absl::StatusOr<BlasLibrary> OpenBlasLibrary(const std::string& name);

// The process's library, opened at the first call: by its name, then in the toolkit's folder.
const absl::StatusOr<BlasLibrary>& SharedBlasLibrary();

// The same for callers that have a CudaContext: Open has loaded the library.
const BlasLibrary& Blas();

}  // namespace stagecoach::cuda

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_RUNTIME_BLAS_LIBRARY_H_
