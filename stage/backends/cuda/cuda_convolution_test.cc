// Convolutions on the card: through cuDNN, by our own kernels, and the reference's. Skips without a
// card, and without cuDNN.
#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "operations/images/convolution.h"
#include "stage/backends/conformance/harness.h"
#include "stage/backends/cuda/cuda_ways_testing.h"
#include "stage/backends/cuda/make_cuda_backend.h"
#include "stage/backends/operation_testing.h"

namespace stagecoach::conformance {
namespace {

struct Convolved {
  const char* name;
  int64_t samples, size, channels, out, window, stride, padding, groups;
};
// The last one's weight gradient takes slices of samples in bfloat16.
constexpr Convolved kConvolved[] = {{"stem", 4, 64, 3, 64, 7, 2, 3, 1},
                                    {"three_by_three", 8, 28, 64, 64, 3, 1, 1, 1},
                                    {"pointwise_stride", 4, 28, 128, 256, 1, 2, 0, 1},
                                    {"depthwise", 2, 28, 32, 32, 7, 1, 3, 32},
                                    {"groups", 2, 28, 64, 64, 3, 1, 1, 4},
                                    {"odd", 3, 11, 17, 33, 3, 1, 1, 1},
                                    {"slices", 12, 56, 256, 64, 1, 1, 0, 1}};

// Forward with a bias, and both gradients, the weight's added to what is there.
Outputs AllPasses(Backend& backend, Elements elements, const Convolved& c) {
  Bench bench(backend, elements);
  const int64_t places = (c.size + 2 * c.padding - c.window) / c.stride + 1;
  const ConvolutionSteps steps = {
      .stride = {c.stride, c.stride}, .padding = {c.padding, c.padding}, .groups = c.groups};
  const int64_t in = c.channels / c.groups;
  const Tensor x = bench.Activation({c.samples * c.size, c.size, c.channels}),
               weight = bench.Activation({c.out, c.window, c.window, in}),
               bias = bench.Activation({c.out}),
               dy = bench.Activation({c.samples * places, places, c.out}),
               y = bench.BlankActivation(dy.shape()), dx = bench.BlankActivation(x.shape()),
               d_weight = bench.Normal(weight.shape());
  RunOn(backend, {.operation = "convolution",
                  .attributes = ToAttributes(ConvolutionAttributes{.steps = steps, .bias = true}),
                  .inputs = {x, Whole(weight), Whole(bias)},
                  .outputs = {y},
                  .samples = c.samples});
  RunOn(backend,
        {.operation = "convolution_input_gradient",
         .attributes = ToAttributes(ConvolutionInputGradientAttributes{steps, {c.size, c.size}}),
         .inputs = {dy, Whole(weight)},
         .outputs = {dx},
         .samples = c.samples});
  RunOn(backend, {.operation = "convolution_weight_gradient",
                  .attributes = ToAttributes(ConvolutionAttributes{.steps = steps}),
                  .inputs = {dy, x},
                  .adds = {d_weight},
                  .samples = c.samples});
  return {bench.Read("y", y), bench.Read("dx", dx), bench.Read("d_weight", d_weight)};
}

class CudaConvolution : public testing::TestWithParam<Convolved> {
 protected:
  void SetUp() override {
    const absl::Status card = MakeCudaBackend({}, 0).status();
    if (!card.ok()) GTEST_SKIP() << "needs a card: " << card;
    library_ = MakeOnCard(true);
    own_ = MakeOnCard(false);
    if (!absl::StrContains(library_->fingerprint(), "convolutions cuDNN")) {
      GTEST_SKIP() << "needs cuDNN: " << library_->fingerprint();
    }
  }
  std::unique_ptr<Backend> library_, own_;
};

TEST_P(CudaConvolution, CudnnRepeatsItsBitsAndAgreesWithOwnKernelsAndTheReference) {
  for (const Elements elements : {Elements::kFloat32, Elements::kBfloat16}) {
    const Outputs first = AllPasses(*library_, elements, GetParam());
    // Else our kernels would be compared with themselves.
    EXPECT_THAT(library_->TakeWays(),
                testing::Each(testing::StartsWith("cuDNN convolution, engine")));
    EXPECT_EQ(Disagreement(AllPasses(*library_, elements, GetParam()), first, 0.0), "")
        << "second run";
    EXPECT_EQ(Disagreement(AllPasses(*MakeOnCard(true), elements, GetParam()), first, 0.0), "")
        << "another context";
    const Tolerances near = {.exact = 1e-4, .bfloat16 = 1.0 / 128};
    EXPECT_EQ(Disagreement(first, AllPasses(*own_, elements, GetParam()), near), "")
        << "own kernels";
    const auto reference = MakeReferenceBackend({});
    const Elements truth = elements == Elements::kFloat32 ? Elements::kFloat32 : Elements::kRounded;
    EXPECT_EQ(Disagreement(first, AllPasses(*reference, truth, GetParam()), near), "")
        << "reference";
  }
}

INSTANTIATE_TEST_SUITE_P(Cuda, CudaConvolution, testing::ValuesIn(kConvolved),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace stagecoach::conformance
