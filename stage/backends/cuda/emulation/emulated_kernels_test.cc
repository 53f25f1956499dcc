// The conformance rows on the kernels' own source, run on the host: numbers, bounds of loops,
// barriers and the order of sums.
#include <vector>

#include "gmock/gmock.h"
#include "operations/attention/attention.h"
#include "stage/backends/conformance/attention_alone.h"
#include "stage/backends/conformance/case_calls.h"
#include "stage/backends/conformance/decoding_alone.h"
#include "stage/backends/conformance/suite.h"
#include "stage/backends/conformance/without_kernels.h"
#include "stage/backends/cuda/emulation/emulated_backend.h"
#include "stage/backends/cuda/kernel_list.h"
#include "stage/backends/loss_testing.h"
#include "stage/backends/operation_testing.h"
#include "stage/backends/reference/kernel_list.h"

namespace stagecoach::conformance {

INSTANTIATE_TEST_SUITE_P(CudaKernelsOnHost, BackendConformance,
                         testing::Combine(testing::Values(BackendUnderTest{
                                              .make = cuda::MakeEmulatedBackend,
                                              .has_threads = false}),
                                          testing::ValuesIn(ConformanceRows())),
                         RowName);

namespace {

std::unique_ptr<Backend> MakeWithoutEpilogues(const BackendOptions& options) {
  return std::make_unique<cuda::EmulatedBackend>(options, /*fuse=*/false);
}

// In bfloat16 what is done by a kernel of its own is rounded once more, bias and GELU both.
std::vector<ConformanceRow> LinearRows() {
  std::vector<ConformanceRow> rows;
  for (ConformanceRow& row : ConformanceRows()) {
    if (row.name.rfind("Linear", 0) != 0) continue;
    row.bfloat16_tolerance = kRoundedInside;
    rows.push_back(std::move(row));
  }
  return rows;
}

INSTANTIATE_TEST_SUITE_P(CudaProductsThatFuseNothing, BackendConformance,
                         testing::Combine(testing::Values(BackendUnderTest{
                                              .make = MakeWithoutEpilogues, .has_threads = false}),
                                          testing::ValuesIn(LinearRows())),
                         RowName);

TEST(CudaKernelsOnHost, AreThoseThatTheReferenceHas) {
  EXPECT_EQ(cuda::Kernels().operations(), reference::Kernels().operations());
}

TEST(CudaKernelsOnHost, AreMissingForTheseOnly) {
  const auto backend = cuda::MakeEmulatedBackend(BackendOptions{});
  EXPECT_THAT(MissingKernels(*backend), testing::ElementsAreArray(OperationsWithoutKernels()));
}

TEST(CudaKernelsOnHost, HeadsOfEveryPaddedWidthAgreeWithTheReference) {
  for (const int64_t width : {32, 48, 65, 128}) {
    ConformanceRow row = {
        .tolerance = 3e-5, .body = [=](Bench& bench) {
          const RandomStream stream = TestStream();
          const Attributes attributes = ToAttributes(
              AttentionAttributes{.heads = 1, .dropout = 0.1, .draw = stream.operation});
          const Tensor qkv = bench.Activation({37, 3 * width}), lse = bench.Blank({37});
          const Tensor out = bench.BlankActivation({37, width});
          const Tensor d_qkv = bench.BlankActivation({37, 3 * width});
          RunOn(bench.backend(), {.operation = "attention",
                                  .attributes = attributes,
                                  .inputs = {qkv},
                                  .outputs = {out, lse},
                                  .stream = stream});
          const Tensor d_out = bench.Activation({37, width});
          RunOn(bench.backend(), {.operation = "attention_gradient",
                                  .attributes = attributes,
                                  .inputs = {d_out, qkv, bench.AsRead(out), lse},
                                  .outputs = {d_qkv},
                                  .stream = stream});
          return Outputs{bench.Read("out", out), bench.Read("lse", lse),
                         bench.Read("d_qkv", d_qkv)};
        }};
    for (const Elements elements : {Elements::kFloat32, Elements::kBfloat16}) {
      row.elements = elements;
      const auto emulated = cuda::MakeEmulatedBackend({});
      const auto reference = MakeReferenceBackend({});
      EXPECT_EQ(row.Disagreement(row.run(*emulated), row.Expected(*reference)), "") << width;
    }
  }
}

// A document that begins inside of a tile has its sums in another order.
TEST(CudaKernelsOnHost, AttentionOfASampleOrADocumentIsThatOfItAlone) {
  const auto backend = cuda::MakeEmulatedBackend({});
  for (const Elements elements : {Elements::kFloat32, Elements::kBfloat16}) {
    EXPECT_EQ(PaddingChanges(*backend, elements), "");
    EXPECT_EQ(CrossPaddingChanges(*backend, elements), "");
  }
  EXPECT_EQ(OtherDocumentsChange(*backend, Elements::kFloat32, 3e-5), "");
  EXPECT_EQ(OtherDocumentsChange(*backend, Elements::kBfloat16, kRoundedInside), "");
}

TEST(CudaKernelsOnHost, AttentionOfARowToItsHistoryIsThatOfItAlone) {
  const auto backend = cuda::MakeEmulatedBackend({});
  EXPECT_EQ(OtherRowsChange(*backend, Elements::kFloat32, 3e-5), "");
  EXPECT_EQ(OtherRowsChange(*backend, Elements::kBfloat16, kRoundedInside), "");
}

TEST(CudaKernelsOnHost, ALogitOfMinusInfinityHasProbabilityZero) {
  const auto run = [](Backend& backend) {
    Bench bench(backend);
    std::vector<float> logits(300, 0.5f);
    for (size_t i = 0; i < logits.size(); i += 2) logits[i] = -INFINITY;
    const LossTensors t = {.logits = bench.From(logits, {1, 300}),
                           .targets = bench.Indices(1, 1),
                           .sums = bench.Blank({2}, DType::kF64),
                           .scale = bench.From({1.0f}, {1}),
                           .d_logits = bench.Blank({1, 300})};
    RunLoss(backend, t);
    return Outputs{bench.Read("d_logits", t.d_logits)};
  };
  const auto emulated = cuda::MakeEmulatedBackend({});
  const auto reference = MakeReferenceBackend({});
  EXPECT_EQ(Disagreement(run(*emulated), run(*reference), 1e-5), "");
}

// Seen: the refusal was kept like a broken card's, so the stage server ended with the job.
TEST(CudaKernelsOnHost, AHeadTooWideIsTheJobsErrorBeforeAnythingIsLaunched) {
  const auto backend = cuda::MakeEmulatedBackend({});
  Bench bench(*backend);
  const TensorCall call{.operation = "attention",
                        .inputs = {bench.Normal({2, 387})},
                        .outputs = {bench.Blank({2, 129}), bench.Blank({2})}};
  const uint64_t before = cuda::emulation::Launches();
  RunOn(*backend, call);
  EXPECT_EQ(cuda::emulation::Launches(), before);
  EXPECT_EQ(backend->Synchronize().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(backend->Synchronize().message()),
              testing::HasSubstr(": heads are 129 wide"));
  EXPECT_TRUE(backend->Fault().ok());
  backend->EndCell();
  EXPECT_TRUE(backend->Synchronize().ok());
}

// The gradients of both tables; token 1 is two thirds of the text.
std::vector<double> TokenGradient(Backend& backend, int64_t rows, int64_t width,
                                  int64_t vocabulary) {
  Bench bench(backend);
  std::vector<int32_t> ids;
  for (int64_t row = 0; row < rows; ++row) ids.push_back(row % 3 == 0 ? int32_t(row / 3 % 3) : 1);
  const Tensor d_token = bench.Blank({vocabulary, width}), d_position = bench.Blank({rows, width});
  const Tensor named = bench.IdsFrom(ids, {rows});
  for (const Tensor& sums : {d_token, d_position}) backend.Fill(sums, 0.0f);
  RunOn(backend, {.operation = "embedding_weight_gradient",
                  .inputs = {named, bench.Normal({rows, width})},
                  .adds = {d_token, d_position}});
  std::vector<double> values = bench.Read("d_token", d_token).values;
  values.resize(static_cast<size_t>(3 * width));
  return values;
}

// More rows than a block keeps in mind of a token, and a last warp without a row.
TEST(CudaKernelsOnHost, ATokenThatIsMostOfTheTextIsSummedByATree) {
  for (const auto& [rows, width] : {std::pair<int64_t, int64_t>{33'011, 3}, {700, 140}, {31, 8}}) {
    const auto emulated = cuda::MakeEmulatedBackend({});
    const auto reference = MakeReferenceBackend({});
    const std::vector<double> sums = TokenGradient(*emulated, rows, width, 3);
    const std::vector<double> expected = TokenGradient(*reference, rows, width, 3);
    for (size_t i = 0; i < sums.size(); ++i) {
      EXPECT_NEAR(sums[i], expected[i], 1e-5 * std::sqrt(static_cast<double>(rows)) * 4) << i;
    }
  }
}

TEST(CudaKernelsOnHost, ATokensSumDoesNotDependOnTheSizeOfTheVocabulary) {
  const auto backend = cuda::MakeEmulatedBackend({});
  EXPECT_EQ(TokenGradient(*backend, 700, 12, 3), TokenGradient(*backend, 700, 12, 1000));
}

TEST(CudaKernelsOnHostDeathTest, AnIdOutsideOfTheVocabularyStopsTheDevice) {
  const auto backend = cuda::MakeEmulatedBackend({});
  Bench bench(*backend);
  const TensorCall call{
      .operation = "embedding",
      .inputs = {bench.Indices(40, 9), Whole(bench.Normal({3, 4})), Whole(bench.Normal({40, 4}))},
      .outputs = {bench.Blank({40, 4})}};
  EXPECT_DEATH(RunOn(*backend, call), "stopped the device");
}

}  // namespace
}  // namespace stagecoach::conformance
