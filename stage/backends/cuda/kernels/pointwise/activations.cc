#include "stage/backends/cuda/kernels/pointwise/activations.h"

#include "stage/backends/cuda/element_types.h"
#include "stage/backends/cuda/kernel_list.h"

namespace stagecoach::cuda {
namespace {

struct GeluLaunch {
  static constexpr char kWhat[] = "gelu";
  template <typename T>
  static cudaError_t Run(cudaStream_t stream, const KernelArguments& a) {
    return Gelu(stream, a.inputs[0].data<T>(), a.outputs[0].data<T>(), a.outputs[0].elements());
  }
};
struct GeluGradientLaunch {
  static constexpr char kWhat[] = "gelu_gradient";
  template <typename T>
  static cudaError_t Run(cudaStream_t stream, const KernelArguments& a) {
    return GeluGradient(stream, a.inputs[0].data<T>(), a.inputs[1].data<T>(),
                        a.outputs[0].data<T>(), a.outputs[0].elements());
  }
};
struct GeluErfLaunch {
  static constexpr char kWhat[] = "gelu_erf";
  template <typename T>
  static cudaError_t Run(cudaStream_t stream, const KernelArguments& a) {
    return GeluErf(stream, a.inputs[0].data<T>(), a.outputs[0].data<T>(), a.outputs[0].elements());
  }
};
struct GeluErfGradientLaunch {
  static constexpr char kWhat[] = "gelu_erf_gradient";
  template <typename T>
  static cudaError_t Run(cudaStream_t stream, const KernelArguments& a) {
    return GeluErfGradient(stream, a.inputs[0].data<T>(), a.inputs[1].data<T>(),
                           a.outputs[0].data<T>(), a.outputs[0].elements());
  }
};
struct SiluLaunch {
  static constexpr char kWhat[] = "silu";
  template <typename T>
  static cudaError_t Run(cudaStream_t stream, const KernelArguments& a) {
    return Silu(stream, a.inputs[0].data<T>(), a.outputs[0].data<T>(), a.outputs[0].elements());
  }
};
struct SiluGradientLaunch {
  static constexpr char kWhat[] = "silu_gradient";
  template <typename T>
  static cudaError_t Run(cudaStream_t stream, const KernelArguments& a) {
    return SiluGradient(stream, a.inputs[0].data<T>(), a.inputs[1].data<T>(),
                        a.outputs[0].data<T>(), a.outputs[0].elements());
  }
};
struct ReluLaunch {
  static constexpr char kWhat[] = "relu";
  template <typename T>
  static cudaError_t Run(cudaStream_t stream, const KernelArguments& a) {
    return Relu(stream, a.inputs[0].data<T>(), a.outputs[0].data<T>(), a.outputs[0].elements());
  }
};
struct ReluGradientLaunch {
  static constexpr char kWhat[] = "relu_gradient";
  template <typename T>
  static cudaError_t Run(cudaStream_t stream, const KernelArguments& a) {
    return ReluGradient(stream, a.inputs[0].data<T>(), a.inputs[1].data<T>(),
                        a.outputs[0].data<T>(), a.outputs[0].elements());
  }
};

template <typename Launch>
absl::StatusOr<Kernel> Prepare(KernelBackend& backend, const Call&, const CallTypes&, DType) {
  return Kernel([&backend](const KernelContext&, const KernelArguments& a) {
    const DType type = TypeOf(Launch::kWhat, {&a.outputs[0], &a.inputs[0]});
    WithType(type, [&]<typename T>(T) {
      backend.Note(Launch::template Run<T>(backend.Begin(), a), Launch::kWhat);
    });
  });
}

}  // namespace

KernelList ActivationsKernels() {
  return {
      {"gelu", Prepare<GeluLaunch>},        {"gelu_gradient", Prepare<GeluGradientLaunch>},
      {"gelu_erf", Prepare<GeluErfLaunch>}, {"gelu_erf_gradient", Prepare<GeluErfGradientLaunch>},
      {"silu", Prepare<SiluLaunch>},        {"silu_gradient", Prepare<SiluGradientLaunch>},
      {"relu", Prepare<ReluLaunch>},        {"relu_gradient", Prepare<ReluGradientLaunch>}};
}

}  // namespace stagecoach::cuda
