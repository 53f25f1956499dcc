// EmulatedBackend: the CUDA back end with its kernels run on the host. Products come from plain
// loops over the column-major problem that the matrix library would be given, with the epilogue
// that it would be asked for first, or last: a library that fuses nothing. Convolutions go through
// convolution graphs where it is given some. For tests.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_EMULATION_EMULATED_BACKEND_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_EMULATION_EMULATED_BACKEND_H_

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "stage/backends/cuda/cudnn/library_convolution.h"
#include "stage/backends/cuda/emulation/emulation.h"
#include "stage/backends/cuda/kernel_backend.h"
#include "stage/backends/cuda/kernels.h"
#include "stage/backends/device/fake_device_api.h"

namespace stagecoach::cuda {

class EmulatedBackend final : public KernelBackend {
 public:
  explicit EmulatedBackend(const BackendOptions& options, bool fuse = true,
                           const HeadChunkLimits& head_chunks = kCardHeadChunks)
      : KernelBackend(std::make_shared<DeviceFault>(std::make_shared<FakeDeviceApi>(), 0)),
        fuse_(fuse),
        head_chunks_(head_chunks),
        allocator_(MakeHostAllocator(options.memory_limit_bytes)) {
    // The suite compares numbers of threads; here they stand for the order of a block's threads.
    emulation::SetOrder(options.threads == 2 ? emulation::Order::kDescending
                                             : emulation::Order::kAscending);
  }
  ~EmulatedBackend() override { CHECK_OK(Fault()); }  // a launch that no card would take
  std::string fingerprint() const override { return "emulated"; }
  std::optional<HeadChunkLimits> HeadChunks() const override { return head_chunks_; }
  Allocator& allocator() override { return *allocator_; }
  void CopyFromHost(std::span<const std::byte> source, const Tensor& target) override {
    if (!source.empty()) std::memcpy(target.raw(), source.data(), source.size());
  }
  void CopyToHost(const Tensor& source, std::span<std::byte> target) override {
    if (!target.empty()) std::memcpy(target.data(), source.raw(), target.size());
  }
  absl::Status Synchronize() override { return fault().status(); }
  std::vector<std::string> TakeWays() override {
    return convolution_.has_value() ? convolution_->TakeUsed() : std::vector<std::string>();
  }

  // What they do not take is for own kernels; a workspace of so many bytes.
  void ConvolveBy(std::unique_ptr<cudnn::ConvolutionGraphs> graphs, int64_t workspace_bytes) {
    // A card's memory begins on a multiple of 256 bytes.
    workspace_ = *allocator_->Allocate(workspace_bytes + 256, MemoryKind::kWorkspace);
    const auto address = reinterpret_cast<uintptr_t>(workspace_->data());
    void* const data = workspace_->data() + (256 - address % 256) % 256;
    convolution_.emplace(std::move(graphs),
                         cudnn::LibraryConvolution::Workspace{data, workspace_bytes});
  }

  // Products with padded rows, of all back ends.
  static inline int64_t strided_products = 0;
  // Kernels and products since the start of the program.
  int64_t Launches() const { return static_cast<int64_t>(emulation::Launches()) + products_; }

 protected:
  cudaStream_t Begin() override { return nullptr; }
  // Exactly as large as asked for, so that a sanitizer sees what goes beyond.
  void* Scratch(size_t bytes, const char*) override {
    scratch_ = std::make_unique<std::byte[]>(bytes);
    std::fill_n(scratch_.get(), bytes, std::byte{0xff});
    return scratch_.get();
  }
  MatmulEpilogue Product(const MatmulShape& shape, const MatmulOperands& operands,
                         const char*) override {
    ++products_;
    if (shape.out_stride != 0) ++strided_products;
    const std::vector<MatmulEpilogue> offers = EpiloguesToTry(shape);
    const MatmulEpilogue epilogue = fuse_ ? offers.front() : offers.back();
    const MatmulProblem problem = DescribeMatmul(shape);
    if (!problem.bf16_operands) {
      Multiply<float, float>(problem, epilogue, operands);
    } else if (problem.bf16_result) {
      Multiply<Bf16, Bf16>(problem, epilogue, operands);
    } else {
      Multiply<Bf16, float>(problem, epilogue, operands);
    }
    return epilogue;
  }
  absl::StatusOr<bool> ConvolveByLibrary(const ConvolutionArgs& args,
                                         const AroundConvolution& around) override {
    if (!convolution_.has_value()) return false;
    return convolution_->Run(args, around);
  }

 private:
  // What the tensor cores keep of a float32.
  static float TensorFloat(float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    if ((bits & 0x7f800000u) != 0x7f800000u) bits = (bits + 0x1000u) & ~0x1fffu;
    std::memcpy(&value, &bits, sizeof bits);
    return value;
  }

  template <typename In, typename Out>
  static void Multiply(const MatmulProblem& p, MatmulEpilogue epilogue,
                       const MatmulOperands& operands) {
    const auto *a = static_cast<const In*>(operands.a), *b = static_cast<const In*>(operands.b);
    const auto* bias = static_cast<const Out*>(operands.bias);
    const auto* residual = static_cast<const Out*>(operands.residual);
    const auto* gelu_input = static_cast<const Out*>(operands.gelu_input);
    auto *d = static_cast<Out*>(operands.d), *activation = static_cast<Out*>(operands.activation);
    const auto read = [&](In element) {
      return p.tensor_float ? TensorFloat(ToFloat(element)) : ToFloat(element);
    };
    for (int64_t j = 0; j < p.n; ++j) {
      for (int64_t i = 0; i < p.m; ++i) {
        double sum = 0;
        for (int64_t l = 0; l < p.k; ++l) {
          const float left = read(p.transpose_a ? a[i * p.a_rows + l] : a[l * p.a_rows + i]);
          const float right = read(p.transpose_b ? b[l * p.b_ld + j] : b[j * p.b_ld + l]);
          sum += double{left} * right;
        }
        const int64_t at = j * p.d_ld + i;
        if (p.beta != 0.0f) sum += p.beta * ToFloat(residual != nullptr ? residual[at] : d[at]);
        if (HasBias(epilogue)) sum += ToFloat(bias[i]);
        const float result = static_cast<float>(sum);
        if (epilogue == MatmulEpilogue::kGeluGradient) {
          d[at] = FromFloat<Out>(result * GeluTanhDerivative(ToFloat(gelu_input[at])));
          continue;
        }
        d[at] = FromFloat<Out>(result);
        if (HasGelu(epilogue)) activation[at] = FromFloat<Out>(GeluTanh(result));
      }
    }
  }

  const bool fuse_;
  const HeadChunkLimits head_chunks_;
  int64_t products_ = 0;
  const std::unique_ptr<Allocator> allocator_;
  std::unique_ptr<std::byte[]> scratch_;
  std::shared_ptr<Buffer> workspace_;  // of convolutions
  std::optional<cudnn::LibraryConvolution> convolution_;
};

inline std::unique_ptr<Backend> MakeEmulatedBackend(const BackendOptions& options) {
  return std::make_unique<EmulatedBackend>(options);
}

}  // namespace stagecoach::cuda

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_EMULATION_EMULATED_BACKEND_H_
