// EmulatedBackend: the CUDA back end with its kernels run on the host. Products come from plain
// loops over the column-major problem that the matrix library would be given. Their epilogue is the
// one that it would be asked for first, or last: a library that fuses nothing. If it is given
// graphs, convolutions and averages over windows go through them. For tests.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_EMULATION_EMULATED_BACKEND_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_EMULATION_EMULATED_BACKEND_H_

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/errors/check.h"
#include "stage/backends/cuda/cudnn/convolution/library_convolution.h"
#include "stage/backends/cuda/cudnn/pool/library_pool.h"
#include "stage/backends/cuda/emulation/emulation.h"
#include "stage/backends/cuda/kernel_backend.h"
#include "stage/backends/cuda/kernels.h"
#include "stage/backends/device/call_queue.h"
#include "stage/backends/device/device_memory.h"
#include "stage/backends/device/testing/fake_device_api.h"
#include "stage/backends/device/testing/fake_graph_api.h"

namespace stagecoach::cuda {

class EmulatedBackend final : public KernelBackend {
 public:
  explicit EmulatedBackend(const BackendOptions& options, bool fuse = true,
                           const HeadChunkLimits& head_chunks = kCardHeadChunks)
      : EmulatedBackend(options, fuse, head_chunks,
                        std::make_shared<DeviceFault>(std::make_shared<FakeDeviceApi>(), 0)) {}
  EmulatedBackend(const BackendOptions& options, bool fuse, const HeadChunkLimits& head_chunks,
                  std::shared_ptr<DeviceFault> fault)
      : KernelBackend(fault),
        fuse_(fuse),
        head_chunks_(head_chunks),
        fault_(std::move(fault)),
        allocator_(MakeHostAllocator(options.memory_limit_bytes)) {
    // The suite compares numbers of threads; here they stand for the order of a block's threads.
    emulation::SetOrder(options.threads == 2 ? emulation::Order::kDescending
                                             : emulation::Order::kAscending);
  }
  // A launch that a card would refuse ends the test.
  ~EmulatedBackend() override {
    if (calls_.has_value()) calls_->Settle();
    allocator_->SetBeforeRelease(nullptr);
    CHECK_OK(Fault());
  }
  std::string fingerprint() const override { return "emulated"; }
  std::optional<HeadChunkLimits> HeadChunks() const override { return head_chunks_; }
  Allocator& allocator() override { return *allocator_; }
  void CopyFromHost(std::span<const std::byte> source, const Tensor& target) override {
    Begin();
    if (!source.empty()) std::memcpy(target.raw(), source.data(), source.size());
  }
  void CopyToHost(const Tensor& source, std::span<std::byte> target) override {
    Begin();
    if (!target.empty()) std::memcpy(target.data(), source.raw(), target.size());
  }
  absl::Status Synchronize() override {
    Begin();
    return fault().status();
  }
  std::vector<std::string> TakeWays() override {
    if (pool_.has_value()) return pool_->TakeUsed();
    return convolution_.has_value() ? convolution_->TakeUsed() : std::vector<std::string>();
  }

  // Convolutions go to these graphs first, with a workspace of `workspace_bytes`.
  void ConvolveBy(std::unique_ptr<cudnn::ConvolutionGraphs> graphs, int64_t workspace_bytes) {
    convolution_.emplace(std::move(graphs), cudnn::LibraryConvolution::Workspace{
                                                MakeWorkspace(workspace_bytes), workspace_bytes});
  }
  void AverageBy(std::unique_ptr<cudnn::PoolGraphs> graphs, int64_t workspace_bytes) {
    pool_.emplace(std::move(graphs),
                  cudnn::LibraryPool::Workspace{MakeWorkspace(workspace_bytes), workspace_bytes});
  }

  // Call it before the first tensor and the first Prepare. Calls of lists then go through a queue
  // to these graphs. Tensors lie in a made-up card's memory, which is reused as a card's is, so
  // that addresses come again.
  void QueueCalls(std::shared_ptr<FakeGraphApi> graphs) {
    graphs_ = std::move(graphs);
    graphs_->on_capturing = [to = graphs_.get()](bool begins) {
      if (!begins) return emulation::SetRecorder(nullptr);
      emulation::SetRecorder([to](std::function<void()> work) { to->Do(std::move(work)); });
    };
    auto card = std::make_shared<FakeDeviceApi>();
    card->total = int64_t{1} << 30;
    allocator_ = MakeDeviceAllocator(std::move(card), 0, 0, fault_, Reuse::kLowest);
    calls_.emplace(CallQueue::Parts{.api = graphs_.get(),
                                    .stream = nullptr,
                                    .fault = fault_.get(),
                                    .make_current = [] {},
                                    .launched = [](int) {},
                                    .say = [](const std::string&) {}});
    QueueCallsIn(&*calls_);
    allocator_->SetBeforeRelease([this] { calls_->ForgetGraphs(); });
  }

  // The number of products with padded rows, by all back ends.
  static inline int64_t strided_products = 0;
  // Kernels and products since the start of the program.
  int64_t Launches() const { return static_cast<int64_t>(emulation::Launches()) + products_; }

 protected:
  cudaStream_t Begin() override {
    if (calls_.has_value()) calls_->Settle();
    return nullptr;
  }
  // Exactly as large as asked for, so that a sanitizer sees accesses beyond.
  void* Scratch(size_t bytes, const char*) override {
    auto scratch = std::make_unique<std::byte[]>(bytes);
    std::byte* const data = scratch.get();
    std::fill_n(data, bytes, std::byte{0xff});
    if (emulation::CurrentRecorder() != nullptr) {
      recorded_scratch_.push_back(std::move(scratch));  // every replay of the recording uses it
    } else {
      scratch_ = std::move(scratch);
    }
    return data;
  }
  MatmulEpilogue Product(const MatmulShape& shape, const MatmulOperands& operands,
                         const char*) override {
    if (shape.out_stride != 0) ++strided_products;
    const std::vector<MatmulEpilogue> offers = EpiloguesToTry(shape);
    const MatmulEpilogue epilogue = fuse_ ? offers.front() : offers.back();
    const MatmulProblem problem = DescribeMatmul(shape);
    const emulation::Recorder* const recorder = emulation::CurrentRecorder();
    if (recorder != nullptr) {
      (*recorder)([=, this] { Multiply(problem, epilogue, operands); });
    } else {
      Multiply(problem, epilogue, operands);
    }
    return epilogue;
  }
  absl::StatusOr<bool> ConvolveByLibrary(const ConvolutionArgs& args,
                                         const AroundConvolution& around) override {
    if (!convolution_.has_value()) return false;
    return convolution_->Run(args, around);
  }
  absl::StatusOr<bool> AverageByLibrary(const AveragePoolArgs& args) override {
    if (!pool_.has_value()) return false;
    return pool_->Run(args);
  }

 private:
  // A card's memory begins on a multiple of 256 bytes.
  void* MakeWorkspace(int64_t bytes) {
    workspace_ = *allocator_->Allocate(bytes + 256, MemoryKind::kWorkspace);
    const auto address = reinterpret_cast<uintptr_t>(workspace_->data());
    return workspace_->data() + (256 - address % 256) % 256;
  }

  void Multiply(const MatmulProblem& problem, MatmulEpilogue epilogue,
                const MatmulOperands& operands) {
    ++products_;
    if (!problem.bf16_operands) {
      Multiply<float, float>(problem, epilogue, operands);
    } else if (problem.bf16_result) {
      Multiply<Bf16, Bf16>(problem, epilogue, operands);
    } else {
      Multiply<Bf16, float>(problem, epilogue, operands);
    }
  }

  // Rounds a float32 as the tensor cores do.
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
  const std::shared_ptr<DeviceFault> fault_;
  std::unique_ptr<Allocator> allocator_;
  std::unique_ptr<std::byte[]> scratch_;
  std::vector<std::unique_ptr<std::byte[]>> recorded_scratch_;
  std::shared_ptr<Buffer> workspace_;  // for the libraries below
  std::optional<cudnn::LibraryConvolution> convolution_;
  std::optional<cudnn::LibraryPool> pool_;
  std::shared_ptr<FakeGraphApi> graphs_;
  std::optional<CallQueue> calls_;
};

inline std::unique_ptr<Backend> MakeEmulatedBackend(const BackendOptions& options) {
  return std::make_unique<EmulatedBackend>(options);
}

}  // namespace stagecoach::cuda

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_EMULATION_EMULATED_BACKEND_H_
