#include <dnnl.hpp>
#include <utility>

#include "gmock/gmock.h"
#include "hwy/targets.h"
#include "stage/backends/backend.h"
#include "stage/backends/conformance/case_calls.h"
#include "stage/backends/conformance/suite.h"
#include "stage/backends/conformance/without_kernels.h"
#include "stage/backends/cpu/kernel_list.h"
#include "stage/backends/cpu/kernels.h"
#include "stage/backends/reference/kernel_list.h"

namespace stagecoach::conformance {

INSTANTIATE_TEST_SUITE_P(Cpu, BackendConformance,
                         testing::Combine(testing::Values(BackendUnderTest{MakeCpuBackend}),
                                          testing::ValuesIn(ConformanceRows())),
                         RowName);

namespace {

// A release runs on machines without AVX-512 too; only this one's choice is tested above.
TEST(CpuBackend, AgreesWithTheReferenceOnEveryInstructionSetOfThisMachine) {
  const auto reference = MakeReferenceBackend(BackendOptions{});
  const auto rows = ConformanceRows();
  std::vector<Outputs> expected;
  for (const ConformanceRow& row : rows) {
    expected.push_back(row.missing(*reference).empty() ? row.Expected(*reference) : Outputs());
  }
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().DeInit();
    const auto backend = MakeCpuBackend(BackendOptions{.threads = 1});
    EXPECT_STREQ(cpu::KernelTarget(), hwy::TargetName(target));
    for (size_t i = 0; i < rows.size(); ++i) {
      if (!rows[i].missing(*backend).empty()) continue;
      EXPECT_EQ(rows[i].Disagreement(rows[i].run(*backend), expected[i]), "")
          << rows[i].name << " on " << hwy::TargetName(target);
    }
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().DeInit();
}

TEST(CpuBackend, HasNoKernelsForTheseOnly) {
  const auto backend = MakeCpuBackend(BackendOptions{.threads = 1});
  EXPECT_THAT(MissingKernels(*backend), testing::ElementsAreArray(OperationsWithoutKernels()));
}

TEST(CpuBackend, InFloat32AResidualHasTheBitsOfAnAdditionOfItsOwn) {
  const auto backend = MakeCpuBackend(BackendOptions{.threads = 2});
  Bench bench(*backend);
  for (const int64_t rows : {1, 63, 300}) {
    for (const int64_t width : {5, 64, 200}) {
      const Shape shape = {rows, width};
      const auto expect_sum = [&](const Tensor& apart, const Tensor& residual, const Tensor& sum) {
        backend->Add({.x = residual, .y = apart});
        EXPECT_EQ(Disagreement({bench.Read("", sum)}, {bench.Read("", apart)}, 0.0), "")
            << rows << " rows of " << width;
      };
      const Tensor residual = bench.Normal(shape);
      LinearForwardArgs linear = {.x = bench.Normal({rows, 70}),
                                  .weight = bench.Normal({width, 70}),
                                  .bias = bench.Normal({width}),
                                  .y = bench.Blank(shape)};
      backend->LinearForward(linear);
      const Tensor product = std::exchange(linear.y, bench.Blank(shape));
      linear.residual = residual;
      backend->LinearForward(linear);
      expect_sum(product, residual, linear.y);

      LayerNormBackwardInputArgs norm = {.dy = bench.Normal(shape),
                                         .x = bench.Normal(shape),
                                         .weight = bench.Normal({width}),
                                         .mean = bench.Normal({rows}),
                                         .rstd = bench.Normal({rows}),
                                         .dx = bench.Blank(shape)};
      backend->LayerNormBackwardInput(norm);
      const Tensor gradient = std::exchange(norm.dx, bench.Blank(shape));
      norm.residual = residual;
      backend->LayerNormBackwardInput(norm);
      expect_sum(gradient, residual, norm.dx);
    }
  }
}

TEST(CpuBackend, FingerprintNamesLibraryAndInstructionSetsButNotThreads) {
  const std::string one = MakeCpuBackend(BackendOptions{.threads = 1})->fingerprint();
  const std::string two = MakeCpuBackend(BackendOptions{.threads = 2})->fingerprint();
  EXPECT_EQ(one, two);
  EXPECT_THAT(one, testing::HasSubstr("oneDNN "));
  EXPECT_THAT(one, testing::HasSubstr(cpu::KernelTarget()));
}

TEST(CpuBackend, WorkspaceIsAccountedAndItsRefusalComesBackFromSynchronize) {
  const auto backend = MakeCpuBackend(BackendOptions{.threads = 1, .memory_limit_bytes = 500000});
  Bench bench(*backend);
  const Tensor x = bench.Normal({64, 64}), y = bench.Blank({64, 64});
  const Tensor weight = bench.Normal({64, 64});
  backend->LinearForward({.x = x, .weight = weight, .y = y});
  ASSERT_TRUE(backend->Synchronize().ok());
  const auto workspace = static_cast<size_t>(MemoryKind::kWorkspace);
  EXPECT_GT(backend->allocator().Use().current[workspace], 0);
  const Tensor qkv = bench.Normal({2048, 12}), out = bench.Blank({2048, 4});
  backend->AttentionForward({.shape = {.sequences = 1, .context = 2048, .heads = 1, .width = 4},
                             .qkv = qkv,
                             .out = out,
                             .log_sum_exp = bench.Blank({2048})});
  EXPECT_EQ(backend->Synchronize().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_FALSE(backend->Synchronize().ok()) << "whoever asks next must hear of it as well";
}

// Seen: one job ran out of memory inside of an operation, and every later job on that server failed
// with the same words until it was restarted. The workspace kept its first refusal for good.
TEST(CpuBackend, ARefusedWorkspaceEndsWithTheCellThatWasRefused) {
  const auto backend = MakeCpuBackend(BackendOptions{.threads = 1, .memory_limit_bytes = 500000});
  Bench bench(*backend);
  {
    const Tensor qkv = bench.Normal({2048, 12}), out = bench.Blank({2048, 4});
    backend->AttentionForward({.shape = {.sequences = 1, .context = 2048, .heads = 1, .width = 4},
                               .qkv = qkv,
                               .out = out,
                               .log_sum_exp = bench.Blank({2048})});
    ASSERT_EQ(backend->Synchronize().code(), absl::StatusCode::kResourceExhausted);
  }
  backend->EndCell();
  const auto workspace = static_cast<size_t>(MemoryKind::kWorkspace);
  EXPECT_EQ(backend->allocator().Use().current[workspace], 0);
  const Tensor x = bench.Normal({64, 64}), y = bench.Blank({64, 64});
  backend->LinearForward({.x = x, .weight = bench.Normal({64, 64}), .y = y});
  const absl::Status status = backend->Synchronize();
  EXPECT_TRUE(status.ok()) << status;
}

TEST(CpuBackend, HasTheKernelsThatTheReferenceHas) {
  EXPECT_EQ(cpu::Kernels().operations(), reference::Kernels().operations());
}

}  // namespace
}  // namespace stagecoach::conformance
