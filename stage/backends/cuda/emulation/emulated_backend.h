// EmulatedBackend: the CUDA back end with its kernels run on the host. Products come from plain
// loops over the column-major problem that the matrix library would be given. For tests.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_EMULATION_EMULATED_BACKEND_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_EMULATION_EMULATED_BACKEND_H_

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>

#include "base/check.h"
#include "stage/backends/cuda/emulation/emulation.h"
#include "stage/backends/cuda/kernel_backend.h"
#include "stage/backends/cuda/kernels.h"

namespace stagecoach::cuda {

class EmulatedBackend final : public KernelBackend {
 public:
  explicit EmulatedBackend(const BackendOptions& options)
      : allocator_(MakeHostAllocator(options.memory_limit_bytes)) {
    // The suite compares numbers of threads; here they stand for the order of a block's threads.
    emulation::SetOrder(options.threads == 2 ? emulation::Order::kDescending
                                             : emulation::Order::kAscending);
  }
  const char* name() const override { return "emulated"; }
  std::string fingerprint() const override { return "emulated"; }
  Allocator& allocator() override { return *allocator_; }
  void CopyFromHost(std::span<const std::byte> source, const Tensor& target) override {
    if (!source.empty()) std::memcpy(target.raw(), source.data(), source.size());
  }
  void CopyToHost(const Tensor& source, std::span<std::byte> target) override {
    if (!target.empty()) std::memcpy(target.data(), source.raw(), target.size());
  }
  absl::Status Synchronize() override { return absl::OkStatus(); }

 protected:
  cudaStream_t Begin() override { return nullptr; }
  void Note(cudaError_t error, const char* what) override { CHECK_EQ(error, cudaSuccess) << what; }
  // Exactly as large as asked for, so that a sanitizer sees what goes beyond.
  void* Scratch(size_t bytes, const char*) override {
    scratch_ = std::make_unique<std::byte[]>(bytes);
    std::fill_n(scratch_.get(), bytes, std::byte{0xff});
    return scratch_.get();
  }
  void Product(const MatmulShape& shape, const float* a, const float* b, const float* bias,
               float* d, const char* what) override {
    const MatmulProblem p = DescribeMatmul(shape);
    for (int64_t j = 0; j < p.n; ++j) {
      for (int64_t i = 0; i < p.m; ++i) {
        double sum = 0;
        for (int64_t l = 0; l < p.k; ++l) {
          const float left = p.transpose_a ? a[i * p.a_rows + l] : a[l * p.a_rows + i];
          const float right = p.transpose_b ? b[l * p.b_rows + j] : b[j * p.b_rows + l];
          sum += double{left} * right;
        }
        float& target = d[j * p.m + i];
        target = static_cast<float>(p.beta == 0.0f ? sum : sum + p.beta * target);
      }
    }
    if (shape.bias) Note(AddBias(nullptr, bias, d, shape.rows, shape.out), what);
  }

 private:
  const std::unique_ptr<Allocator> allocator_;
  std::unique_ptr<std::byte[]> scratch_;
};

inline std::unique_ptr<Backend> MakeEmulatedBackend(const BackendOptions& options) {
  return std::make_unique<EmulatedBackend>(options);
}

}  // namespace stagecoach::cuda

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_EMULATION_EMULATED_BACKEND_H_
