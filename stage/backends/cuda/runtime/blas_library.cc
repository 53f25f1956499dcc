#include "stage/backends/cuda/runtime/blas_library.h"

#include <dlfcn.h>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"

namespace stagecoach::cuda {
namespace {

class Symbols {
 public:
  explicit Symbols(void* handle) : handle_(handle) {}

  template <typename Function>
  void Find(const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(handle_, name));
    if (function == nullptr && missing_ == nullptr) missing_ = name;
  }
  const char* missing() const { return missing_; }  // the first one; null: none

 private:
  void* const handle_;
  const char* missing_ = nullptr;
};

const char* FindAll(void* handle, BlasLibrary& blas) {
  Symbols symbols(handle);
  symbols.Find("cublasLtGetVersion", blas.GetVersion);
  symbols.Find("cublasLtGetStatusName", blas.GetStatusName);
  symbols.Find("cublasLtGetStatusString", blas.GetStatusString);
  symbols.Find("cublasLtCreate", blas.Create);
  symbols.Find("cublasLtDestroy", blas.Destroy);
  symbols.Find("cublasLtMatrixLayoutCreate", blas.MatrixLayoutCreate);
  symbols.Find("cublasLtMatrixLayoutDestroy", blas.MatrixLayoutDestroy);
  symbols.Find("cublasLtMatmulDescCreate", blas.MatmulDescCreate);
  symbols.Find("cublasLtMatmulDescDestroy", blas.MatmulDescDestroy);
  symbols.Find("cublasLtMatmulDescSetAttribute", blas.MatmulDescSetAttribute);
  symbols.Find("cublasLtMatmulPreferenceCreate", blas.MatmulPreferenceCreate);
  symbols.Find("cublasLtMatmulPreferenceDestroy", blas.MatmulPreferenceDestroy);
  symbols.Find("cublasLtMatmulPreferenceSetAttribute", blas.MatmulPreferenceSetAttribute);
  symbols.Find("cublasLtMatmulAlgoGetHeuristic", blas.MatmulAlgoGetHeuristic);
  symbols.Find("cublasLtMatmulAlgoConfigGetAttribute", blas.MatmulAlgoConfigGetAttribute);
  symbols.Find("cublasLtMatmul", blas.Matmul);
  return symbols.missing();
}

}  // namespace

std::string BlasLibraryName() { return absl::StrCat("libcublasLt.so.", CUBLAS_VER_MAJOR); }

absl::StatusOr<BlasLibrary> OpenBlasLibrary(const std::string& name) {
  void* const handle = dlopen(name.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* const error = dlerror();
    return absl::UnavailableError(absl::StrCat(
        "cuBLASLt was not found (", error != nullptr ? error : name, "); install CUDA ",
        CUBLAS_VER_MAJOR, ", or have LD_LIBRARY_PATH name the folder of libcublasLt (nvidia/cu",
        CUBLAS_VER_MAJOR, "/lib or nvidia/cublas/lib of a Python wheel)"));
  }
  BlasLibrary blas;
  if (const char* const missing = FindAll(handle, blas)) {
    dlclose(handle);
    return absl::UnavailableError(absl::StrCat(name, " is no cuBLASLt: it has no ", missing));
  }
  return blas;
}

const absl::StatusOr<BlasLibrary>& SharedBlasLibrary() {
  static const auto* const library = new absl::StatusOr<BlasLibrary>([] {
    absl::StatusOr<BlasLibrary> named = OpenBlasLibrary(BlasLibraryName());
    if (named.ok()) return named;
    // Where it was compiled the loader may know nothing of the toolkit's folder.
    absl::StatusOr<BlasLibrary> of_toolkit =
        OpenBlasLibrary(absl::StrCat(STAGECOACH_CUDA_LIBRARIES, "/", BlasLibraryName()));
    return of_toolkit.ok() ? of_toolkit : named;
  }());
  return *library;
}

const BlasLibrary& Blas() {
  CHECK(SharedBlasLibrary().ok()) << SharedBlasLibrary().status();
  return *SharedBlasLibrary();
}

}  // namespace stagecoach::cuda
