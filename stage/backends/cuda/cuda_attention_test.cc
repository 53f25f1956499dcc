// Attention in BF16 on the card: through cuDNN, by our own kernels, and the reference's in float32
// on the same numbers. Skips without a card, and without cuDNN.
#include "base/numbers/bfloat16.h"
#include "gtest/gtest.h"
#include "operations/attention/attention.h"
#include "stage/backends/conformance/harness.h"
#include "stage/backends/cuda/cuda_ways_testing.h"
#include "stage/backends/cuda/make_cuda_backend.h"
#include "stage/backends/operation_testing.h"

namespace stagecoach::conformance {
namespace {

struct Size {
  int64_t sequences, context, heads, head_width;
};
// The last two need more score matrices than backward passes may have at once: slices of sequences,
// and of heads. The third is the smallest there is.
constexpr Size kSizes[] = {{2, 1024, 12, 64}, {3, 384, 5, 80},    {1, 128, 1, 8},
                           {2, 256, 3, 128},  {12, 1024, 12, 64}, {2, 4096, 12, 64}};

// Numbers that BF16 holds exactly, in the type that is asked for.
Tensor Numbers(Backend& backend, DType dtype, Shape shape, uint32_t operation, float scale) {
  auto tensor = MakeTensor(backend.allocator(), MemoryKind::kActivations, dtype, std::move(shape));
  CHECK_OK(tensor.status());
  const RandomStream stream = {.seed = 11, .operation = operation};
  std::vector<Bfloat16> narrow;
  std::vector<float> wide;
  for (int64_t i = 0; i < tensor->elements(); ++i) {
    narrow.emplace_back(scale * RandomNormal(stream, static_cast<uint64_t>(i)));
    wide.push_back(static_cast<float>(narrow.back()));
  }
  backend.CopyFromHost(
      dtype == DType::kBF16 ? std::as_bytes(std::span(narrow)) : std::as_bytes(std::span(wide)),
      *tensor);
  CHECK_OK(backend.Synchronize());
  return *std::move(tensor);
}

Output Read(Backend& backend, const char* name, const Tensor& tensor) {
  std::vector<std::byte> bytes(static_cast<size_t>(tensor.bytes()));
  backend.CopyToHost(tensor, bytes);
  CHECK_OK(backend.Synchronize());
  Output output{name, {}};
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    if (tensor.dtype() == DType::kBF16) {
      output.values.push_back(
          static_cast<float>(reinterpret_cast<const Bfloat16*>(bytes.data())[i]));
    } else {
      output.values.push_back(reinterpret_cast<const float*>(bytes.data())[i]);
    }
  }
  return output;
}

Outputs ForwardAndBackward(Backend& backend, DType dtype, const Size& size) {
  Bench bench(backend);
  const int64_t n = size.sequences * size.context, width = size.heads * size.head_width;
  const Attributes attributes = ToAttributes(AttentionAttributes{.heads = size.heads});
  const Tensor qkv = Numbers(backend, dtype, {n, 3 * width}, 1, 1.5f),
               out = bench.Blank({n, width}, dtype),
               log_sum_exp = bench.Blank({size.sequences, size.heads, size.context}),
               d_out = Numbers(backend, dtype, {n, width}, 2, 1.0f),
               d_qkv = bench.Blank({n, 3 * width}, dtype);
  RunOn(backend, {.operation = "attention",
                  .attributes = attributes,
                  .inputs = {qkv},
                  .outputs = {out, log_sum_exp},
                  .samples = size.sequences});
  RunOn(backend, {.operation = "attention_gradient",
                  .attributes = attributes,
                  .inputs = {d_out, qkv, out, log_sum_exp},
                  .outputs = {d_qkv},
                  .samples = size.sequences});
  return {Read(backend, "out", out), Read(backend, "log_sum_exp", log_sum_exp),
          Read(backend, "d_qkv", d_qkv)};
}

class CudaAttention : public testing::TestWithParam<Size> {
 protected:
  void SetUp() override {
    const absl::Status card = MakeCudaBackend({}, 0).status();
    if (!card.ok()) GTEST_SKIP() << "needs a card: " << card;
    library_ = MakeOnCard(true);
    own_ = MakeOnCard(false);
    if (library_->fingerprint().find("cuDNN") == std::string::npos) {
      GTEST_SKIP() << "needs cuDNN: " << library_->fingerprint();
    }
    // Else our kernels would be compared with themselves.
    EXPECT_EQ(WayOn(*library_), "cuDNN");
    EXPECT_EQ(WayOn(*own_), "own kernels");
  }
  static std::string WayOn(Backend& backend) {
    const Size& size = GetParam();
    const int64_t width = size.heads * size.head_width;
    const Call call = {.operation = "attention",
                       .attributes = ToAttributes(AttentionAttributes{.heads = size.heads})};
    const CallTypes types = {{ActivationType({size.context, 3 * width})},
                             {ActivationType({size.context, width}),
                              {Element::kFloat32, Leading::kSamples, {size.heads, size.context}}},
                             {}};
    const auto described = backend.Describe(call, types, size.sequences, DType::kBF16);
    return described.ok() ? described->way : described.status().ToString();
  }
  std::unique_ptr<Backend> library_, own_;
};

TEST_P(CudaAttention, CudnnRepeatsItsBitsAndAgreesWithOwnKernelsAndTheReference) {
  const Outputs first = ForwardAndBackward(*library_, DType::kBF16, GetParam());
  EXPECT_EQ(Disagreement(ForwardAndBackward(*library_, DType::kBF16, GetParam()), first, 0.0), "")
      << "second run";
  EXPECT_EQ(
      Disagreement(ForwardAndBackward(*MakeOnCard(true), DType::kBF16, GetParam()), first, 0.0), "")
      << "another context";
  EXPECT_EQ(Disagreement(first, ForwardAndBackward(*own_, DType::kBF16, GetParam()), 2e-2), "")
      << "own kernels";
  // The reference takes a minute for the long context.
  if (GetParam().context > 1024) return;
  const auto reference = MakeReferenceBackend({});
  EXPECT_EQ(Disagreement(first, ForwardAndBackward(*reference, DType::kF32, GetParam()), 2e-2), "")
      << "reference";
}

INSTANTIATE_TEST_SUITE_P(Cuda, CudaAttention, testing::ValuesIn(kSizes), [](const auto& info) {
  const Size& s = info.param;
  return std::to_string(s.sequences) + "x" + std::to_string(s.context) + "_" +
         std::to_string(s.heads) + "x" + std::to_string(s.head_width);
});

}  // namespace
}  // namespace stagecoach::conformance
