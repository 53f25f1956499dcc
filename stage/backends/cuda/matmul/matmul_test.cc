// Products by a table, on a card: what was taken is what runs, with its own fingerprint and bits
// that repeat. Skips without a card; what is pure is tested in emulation/.

#include "absl/strings/str_cat.h"
#include "base/testing/temporary_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "operations/linear.h"
#include "stage/backends/conformance/harness.h"
#include "stage/backends/cuda/make_cuda_backend.h"
#include "stage/backends/cuda/matmul/matmul_table_file.h"
#include "stage/backends/cuda/matmul/matmul_tuning.h"
#include "stage/backends/operation_testing.h"

namespace stagecoach::conformance {
namespace {

using cuda::MatmulOffer;
using cuda::MatmulTable;
using testing::HasSubstr;

class CudaMatmulTable : public testing::Test {
 protected:
  void SetUp() override {
    auto backend = MakeCudaBackend({}, 0);
    if (!backend.ok()) GTEST_SKIP() << "needs a card: " << backend.status();
    plain_ = *std::move(backend);
  }

  // y = x w^T + b and gelu(y) are queued; gelu(y) is what comes back.
  static Tensor RunLinear(Backend& backend, Bench& bench) {
    const Tensor x = bench.Normal({64, 96}), w = bench.Normal({128, 96}, 0.1f),
                 b = bench.Normal({128}), y = bench.Blank({64, 128}),
                 activation = bench.Blank({64, 128});
    RunOn(backend, {.operation = "linear",
                    .attributes = ToAttributes(LinearAttributes{.bias = true, .gelu = true}),
                    .inputs = {x, Whole(w), Whole(b)},
                    .outputs = {y, activation},
                    .samples = 64});
    return activation;
  }
  static std::vector<double> Linear(Backend& backend) {
    Bench bench(backend);
    return bench.Read("activation", RunLinear(backend, bench)).values;
  }

  std::unique_ptr<Backend> plain_;
  const TemporaryFolder folder_;
  const std::string path_ = folder_.File("table");
};

TEST_F(CudaMatmulTable, EveryOfferThatItNamesRunsWithTheSameNumbersAndBitsOfItsOwn) {
  cuda::MatmulTrials& trials = *MatmulTrialsOf(*plain_);
  const std::vector<double> expected = Linear(*plain_);
  const std::vector<cuda::MatmulShape> shapes = trials.TakeShapes();
  ASSERT_EQ(shapes.size(), 1u);
  const std::vector<MatmulOffer> offers = trials.Offers(shapes[0]);
  ASSERT_FALSE(offers.empty());
  for (const MatmulOffer& offer : offers) {
    if (!cuda::MayTake(offer.candidate, static_cast<size_t>(trials.Header().workspace_bytes))) {
      continue;
    }
    MatmulTable table(trials.Header());
    table.Add(shapes[0], {offer.fused, offer.candidate.algorithm});
    ASSERT_TRUE(cuda::SaveMatmulTable(table, path_).ok());
    const auto tabled = MakeCudaBackend({.matmul_table = path_}, 0);
    ASSERT_TRUE(tabled.ok()) << tabled.status();
    EXPECT_THAT((*tabled)->fingerprint(),
                HasSubstr(absl::StrCat(", matmul table ", table.Digest().substr(0, 12), ", ")));
    const std::vector<double> first = Linear(**tabled);
    EXPECT_THAT((*tabled)->TakeWays(),
                testing::Contains(HasSubstr(cuda::AlgorithmText(offer.candidate.algorithm))));
    EXPECT_EQ(Linear(**tabled), first);
    for (size_t i = 0; i < first.size(); ++i) EXPECT_NEAR(first[i], expected[i], 1e-4) << i;
  }
}

TEST_F(CudaMatmulTable, OfAnotherLibraryIsRefusedAtTheStart) {
  cuda::MatmulTableHeader header = MatmulTrialsOf(*plain_)->Header();
  ++header.library_version;
  ASSERT_TRUE(cuda::SaveMatmulTable(MatmulTable(header), path_).ok());
  const absl::Status status = MakeCudaBackend({.matmul_table = path_}, 0).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("--matmul-table: " + path_));
}

TEST_F(CudaMatmulTable, WithAnAlgorithmThatIsNoneFailsTheJobAndNoOther) {
  Linear(*plain_);
  cuda::MatmulTrials& trials = *MatmulTrialsOf(*plain_);
  MatmulTable table(trials.Header());
  table.Add(trials.TakeShapes().at(0), {.algorithm = {.id = -7}});
  ASSERT_TRUE(cuda::SaveMatmulTable(table, path_).ok());
  const auto tabled = MakeCudaBackend({.matmul_table = path_}, 0);
  ASSERT_TRUE(tabled.ok()) << tabled.status();
  Bench bench(**tabled);
  RunLinear(**tabled, bench);
  const absl::Status status = (*tabled)->Synchronize();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("the table is of another library"));
  EXPECT_TRUE((*tabled)->Fault().ok()) << "the card is good for other jobs";
  (*tabled)->EndCell();
  EXPECT_TRUE((*tabled)->Synchronize().ok());
}

}  // namespace
}  // namespace stagecoach::conformance
