// Averages over windows on the card: through cuDNN, by our own kernels, and the reference's. Skips
// without a card, and without cuDNN.
#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "operations/images/pool.h"
#include "stage/backends/conformance/harness.h"
#include "stage/backends/cuda/cuda_ways_testing.h"
#include "stage/backends/cuda/make_cuda_backend.h"
#include "stage/backends/operation_testing.h"

namespace stagecoach::conformance {
namespace {

struct Pooled {
  const char* name;
  int64_t samples, size, channels, window, stride, padding;
};
constexpr Pooled kPooled[] = {{"whole_image", 32, 7, 2048, 7, 7, 0},
                              {"three_by_three", 8, 28, 192, 3, 1, 1},
                              {"three_by_three_stride", 8, 57, 64, 3, 2, 1},
                              {"apart", 8, 56, 64, 2, 2, 0},
                              {"odd", 3, 11, 17, 5, 3, 2}};

// Forward with padding that counts and that does not, and the gradient.
Outputs BothPasses(Backend& backend, Elements elements, const Pooled& p) {
  Bench bench(backend, elements);
  const int64_t places = (p.size + 2 * p.padding - p.window) / p.stride + 1;
  const PoolSteps steps = {.window = {p.window, p.window},
                           .stride = {p.stride, p.stride},
                           .padding = {p.padding, p.padding}};
  const Tensor x = bench.Activation({p.samples * p.size, p.size, p.channels}),
               dy = bench.Activation({p.samples * places, places, p.channels}),
               y = bench.BlankActivation(dy.shape()), padded = bench.BlankActivation(dy.shape()),
               dx = bench.BlankActivation(x.shape());
  RunOn(backend, {.operation = "average_pool",
                  .attributes = ToAttributes(AveragePoolAttributes{steps}),
                  .inputs = {x},
                  .outputs = {y},
                  .samples = p.samples});
  RunOn(backend,
        {.operation = "average_pool",
         .attributes = ToAttributes(AveragePoolAttributes{.steps = steps, .count_padding = true}),
         .inputs = {x},
         .outputs = {padded},
         .samples = p.samples});
  RunOn(backend,
        {.operation = "average_pool_gradient",
         .attributes = ToAttributes(AveragePoolGradientAttributes{steps, false, {p.size, p.size}}),
         .inputs = {dy},
         .outputs = {dx},
         .samples = p.samples});
  return {bench.Read("y", y), bench.Read("y, padding counts", padded), bench.Read("dx", dx)};
}

class CudaPool : public testing::TestWithParam<Pooled> {
 protected:
  void SetUp() override {
    const absl::Status card = MakeCudaBackend({}, 0).status();
    if (!card.ok()) GTEST_SKIP() << "needs a card: " << card;
    library_ = MakeOnCard(true);
    own_ = MakeOnCard(false);
    if (!absl::StrContains(library_->fingerprint(), "pools cuDNN")) {
      GTEST_SKIP() << "needs cuDNN: " << library_->fingerprint();
    }
  }
  std::unique_ptr<Backend> library_, own_;
};

TEST_P(CudaPool, CudnnRepeatsItsBitsAndAgreesWithOwnKernelsAndTheReference) {
  for (const Elements elements : {Elements::kFloat32, Elements::kBfloat16}) {
    const Outputs first = BothPasses(*library_, elements, GetParam());
    // Else our kernels would be compared with themselves.
    EXPECT_THAT(library_->TakeWays(),
                testing::Contains(testing::StartsWith("cuDNN average pool, engine")));
    EXPECT_EQ(Disagreement(BothPasses(*library_, elements, GetParam()), first, 0.0), "")
        << "second run";
    EXPECT_EQ(Disagreement(BothPasses(*MakeOnCard(true), elements, GetParam()), first, 0.0), "")
        << "another context";
    const Tolerances near = {.exact = 1e-5, .bfloat16 = 1.0 / 128};
    EXPECT_EQ(Disagreement(first, BothPasses(*own_, elements, GetParam()), near), "")
        << "own kernels";
    const auto reference = MakeReferenceBackend({});
    const Elements truth = elements == Elements::kFloat32 ? Elements::kFloat32 : Elements::kRounded;
    EXPECT_EQ(Disagreement(first, BothPasses(*reference, truth, GetParam()), near), "")
        << "reference";
  }
}

INSTANTIATE_TEST_SUITE_P(Cuda, CudaPool, testing::ValuesIn(kPooled),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace stagecoach::conformance
