// MakeCudaBackend: the back end of NVIDIA cards. It needs no CUDA header, so every build can
// include it for --device=cuda.
// Errors:    each says what to do. UNIMPLEMENTED: the programs were built without CUDA.
//            UNAVAILABLE: no card, or too old a driver. INVALID_ARGUMENT: a card that is not there,
//            or a table of matrix algorithms that cannot be read. FAILED_PRECONDITION: a table of
//            another card or library.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_MAKE_CUDA_BACKEND_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_MAKE_CUDA_BACKEND_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "stage/backends/backend.h"

namespace stagecoach {

namespace cuda {
class MatmulTrials;
}

// Defined in cuda_backend.cc, or in absent/ where CUDA is not built. options.threads is of no use
// to a card.
absl::StatusOr<std::unique_ptr<Backend>> MakeCudaBackend(const BackendOptions& options,
                                                         int ordinal);

// For tuning the matrix products of this back end, which owns the result. Null: it is no card.
cuda::MatmulTrials* MatmulTrialsOf(Backend& backend);

// The card's PCI address, "0000:3b:00.0", for other libraries: CUDA_VISIBLE_DEVICES does not change
// it. "" if there is no such card.
std::string CudaDeviceAddress(int ordinal);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_MAKE_CUDA_BACKEND_H_
