// The conformance rows on the kernels' own source, run on the host: numbers, bounds of loops,
// barriers and the order of sums. Products come from plain loops over the column-major problem that
// the matrix library would be given.
#include <algorithm>
#include <cstring>
#include <vector>

#include "gmock/gmock.h"
#include "stage/backends/conformance/suite.h"
#include "stage/backends/cuda/emulation/emulation.h"
#include "stage/backends/cuda/kernel_backend.h"
#include "stage/backends/cuda/kernels.h"

namespace stagecoach::cuda {
namespace {

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

std::unique_ptr<Backend> MakeEmulatedBackend(const BackendOptions& options) {
  return std::make_unique<EmulatedBackend>(options);
}

}  // namespace
}  // namespace stagecoach::cuda

namespace stagecoach::conformance {

INSTANTIATE_TEST_SUITE_P(CudaKernelsOnHost, BackendConformance,
                         testing::Combine(testing::Values(BackendUnderTest{
                                              cuda::MakeEmulatedBackend}),
                                          testing::ValuesIn(ConformanceRows())),
                         RowName);

namespace {

TEST(CudaKernelsOnHost, HeadsOfEveryPaddedWidthAgreeWithTheReference) {
  for (const int64_t width : {32, 48, 65, 128}) {
    const auto run = [&](Backend& backend) {
      Bench bench(backend);
      const AttentionShape shape = {.sequences = 1,
                                    .context = 37,
                                    .heads = 1,
                                    .width = width,
                                    .dropout = 0.1,
                                    .stream = TestStream()};
      const Tensor qkv = bench.Normal({37, 3 * width}), out = bench.Blank({37, width});
      const Tensor lse = bench.Blank({37}), d_qkv = bench.Blank({37, 3 * width});
      backend.AttentionForward({.shape = shape, .qkv = qkv, .out = out, .log_sum_exp = lse});
      backend.AttentionBackward({.shape = shape,
                                 .d_out = bench.Normal({37, width}),
                                 .qkv = qkv,
                                 .out = out,
                                 .log_sum_exp = lse,
                                 .d_qkv = d_qkv});
      return Outputs{bench.Read("out", out), bench.Read("lse", lse), bench.Read("d_qkv", d_qkv)};
    };
    const auto emulated = cuda::MakeEmulatedBackend({});
    const auto reference = MakeReferenceBackend({});
    EXPECT_EQ(Disagreement(run(*emulated), run(*reference), 3e-5), "") << width;
  }
}

TEST(CudaKernelsOnHost, ALogitOfMinusInfinityHasProbabilityZero) {
  const auto run = [](Backend& backend) {
    Bench bench(backend);
    std::vector<float> logits(300, 0.5f);
    for (size_t i = 0; i < logits.size(); i += 2) logits[i] = -INFINITY;
    CrossEntropyArgs args = {.logits = bench.From(logits, {1, 300}),
                             .targets = bench.Indices(1, 1),
                             .loss = bench.Blank({1}, DType::kF64),
                             .d_logits = bench.Blank({1, 300})};
    backend.CrossEntropy(args);
    return Outputs{bench.Read("d_logits", args.d_logits)};
  };
  const auto emulated = cuda::MakeEmulatedBackend({});
  const auto reference = MakeReferenceBackend({});
  EXPECT_EQ(Disagreement(run(*emulated), run(*reference), 1e-5), "");
}

TEST(CudaKernelsOnHostDeathTest, AnIdOutsideOfTheVocabularyStopsTheDevice) {
  const auto backend = cuda::MakeEmulatedBackend({});
  Bench bench(*backend);
  EmbeddingForwardArgs args = {.ids = bench.Indices(40, 9),
                               .token = bench.Normal({3, 4}),
                               .position = bench.Normal({40, 4}),
                               .context = 40,
                               .y = bench.Blank({40, 4})};
  EXPECT_DEATH(backend->EmbeddingForward(args), "stopped the device");
}

}  // namespace
}  // namespace stagecoach::conformance
