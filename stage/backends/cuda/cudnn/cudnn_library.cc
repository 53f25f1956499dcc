#include "stage/backends/cuda/cudnn/cudnn_library.h"

#include <dlfcn.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "stage/backends/cuda/cudnn/cudnn_offer.h"

namespace stagecoach::cudnn {
namespace {

constexpr char kName[] = "libcudnn.so.9";
constexpr char kVariable[] = "STAGECOACH_CUDNN";
constexpr char kOff[] = "off";
constexpr int kMajor = 9;

}  // namespace

std::string CudnnName() {
  const char* const asked = std::getenv(kVariable);
  return asked != nullptr && *asked != '\0' ? asked : kName;
}

absl::StatusOr<CudnnLibrary> OpenCudnnLibrary(const std::string& name) {
  if (name == kOff) {
    return absl::UnavailableError(absl::StrCat("cuDNN is switched off by ", kVariable, "=", kOff));
  }
  void* const handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* const error = dlerror();
    return absl::UnavailableError(absl::StrCat(
        "cuDNN was not found (", error != nullptr ? error : name,
        "); install cuDNN 9, or have LD_LIBRARY_PATH name its folder (nvidia/cudnn/lib of a Python "
        "wheel), or let ",
        kVariable, " name the file"));
  }
  using GetVersion = size_t (*)();
  const auto get_version = reinterpret_cast<GetVersion>(dlsym(handle, "cudnnGetVersion"));
  const int version = get_version != nullptr ? static_cast<int>(get_version()) : 0;
  if (version / 10000 != kMajor) {
    dlclose(handle);
    return absl::UnavailableError(
        get_version == nullptr ? absl::StrCat(name, " is no cuDNN: it has no cudnnGetVersion")
                               : absl::StrCat(name, " is cuDNN ", VersionText(version),
                                              ", version ", kMajor, " is needed"));
  }
  return CudnnLibrary{handle, version};
}

}  // namespace stagecoach::cudnn
