// What --device=cuda says in programs that were built without CUDA.
#include "absl/strings/str_cat.h"
#include "stage/backends/cuda/make_cuda_backend.h"

namespace stagecoach {

absl::StatusOr<std::unique_ptr<Backend>> MakeCudaBackend(const BackendOptions&, int ordinal) {
  return absl::UnimplementedError(
      absl::StrCat("device cuda:", ordinal,
                   ": this program was built without the CUDA back end; install the CUDA toolkit "
                   "(12.4 or newer, with cuBLAS) and configure again with -DSTAGECOACH_CUDA=ON, or "
                   "use --device=cpu"));
}

cuda::MatmulTrials* MatmulTrialsOf(Backend& /*backend*/) { return nullptr; }

std::string CudaDeviceAddress(int /*ordinal*/) { return ""; }

}  // namespace stagecoach
