#include <cmath>
#include <cstring>
#include <dnnl.hpp>

#include "base/sanitized.h"
#include "gmock/gmock.h"
#include "hwy/targets.h"
#include "operations/attention/attention.h"
#include "operations/attention/attention_scratch.h"
#include "operations/images/convolution.h"
#include "operations/linear.h"
#include "operations/norms/layer_norm.h"
#include "operations/updates/lamb_update.h"
#include "stage/backends/backend.h"
#include "stage/backends/conformance/attention_alone.h"
#include "stage/backends/conformance/case_calls.h"
#include "stage/backends/conformance/decoding_alone.h"
#include "stage/backends/conformance/description_suite.h"
#include "stage/backends/conformance/measured_backend.h"
#include "stage/backends/conformance/suite.h"
#include "stage/backends/conformance/without_kernels.h"
#include "stage/backends/cpu/kernel_list.h"
#include "stage/backends/cpu/vector/kernels.h"
#include "stage/backends/operation_testing.h"
#include "stage/backends/reference/kernel_list.h"

namespace stagecoach::conformance {

INSTANTIATE_TEST_SUITE_P(Cpu, BackendConformance,
                         testing::Combine(testing::Values(BackendUnderTest{.make = MakeCpuBackend}),
                                          testing::ValuesIn(ConformanceRows())),
                         RowName);

INSTANTIATE_TEST_SUITE_P(Cpu, BackendDescription,
                         testing::Combine(testing::Values(BackendUnderTest{.make = MakeCpuBackend}),
                                          testing::ValuesIn(ConformanceRows())),
                         RowName);
// As on machines with neither instructions for bfloat16 nor fast convolutions.
INSTANTIATE_TEST_SUITE_P(CpuByLoops, BackendDescription,
                         testing::Combine(testing::Values(BackendUnderTest{
                                              .make =
                                                  [](const BackendOptions& options) {
                                                    return std::make_unique<cpu::CpuBackend>(
                                                        options, cpu::Bfloat16Products::kWidened,
                                                        cpu::Convolutions::kByColumns);
                                                  }}),
                                          testing::ValuesIn(ConformanceRows())),
                         RowName);

namespace {

// Two sequences of 40 rows, two heads of 16.
void Attend(Backend& backend) {
  Bench bench(backend);
  RunOn(backend, {.operation = "attention",
                  .attributes = ToAttributes(AttentionAttributes{.heads = 2}),
                  .inputs = {bench.Normal({80, 96})},
                  .outputs = {bench.Blank({80, 32}), bench.Blank({2, 2, 40})},
                  .samples = 2});
}

void UpdateByLamb(Backend& backend) {
  Bench bench(backend);
  const Shape shape = {20000};
  UpdateOn(
      backend,
      {.operation = "lamb_update",
       .attributes = ToAttributes(LambUpdateAttributes{}),
       .adds = {bench.Normal(shape), bench.Normal(shape), bench.Blank(shape), bench.Blank(shape)}},
      {.learning_rate = 0.1});
}

// The suite above must find a description that is too small.
TEST(CpuBackend, ADescriptionThatIsAByteTooSmallIsFound) {
  const auto exceeded = [](void (*run)(Backend&), int64_t room, int64_t shared) {
    MeasuredBackend measured(MakeCpuBackend({.threads = 3}),
                             [&](const Call&, CallDescription* description) {
                               description->room += room;
                               description->shared += shared;
                             });
    run(measured);
    EXPECT_EQ(measured.measured(), 1);
    return measured.exceeded();
  };
  EXPECT_EQ(exceeded(Attend, 0, 0), "");
  EXPECT_THAT(exceeded(Attend, -1, 0), testing::HasSubstr("attention of 2 samples, 3 threads"));
  EXPECT_EQ(exceeded(UpdateByLamb, 0, 0), "");
  EXPECT_THAT(exceeded(UpdateByLamb, 0, -1), testing::HasSubstr("lamb_update"));
}

// Its operands are too many to be widened, so it goes by columns and makes the image in float32.
TEST(CpuBackend, DescribesTheGradientOfALargeImageInBfloat16) {
  MeasuredBackend measured(MakeCpuBackend({.threads = 2}));
  Bench bench(measured, Elements::kBfloat16);
  RunOn(measured,
        {.operation = "convolution_input_gradient",
         .attributes = ToAttributes(ConvolutionInputGradientAttributes{.image = {1024, 1024}}),
         .inputs = {bench.Activation({1024, 1024, 1}), Whole(bench.Activation({1, 1, 1, 8}))},
         .outputs = {bench.BlankActivation({1024, 1024, 8})}});
  EXPECT_EQ(measured.measured(), 1);
  EXPECT_EQ(measured.exceeded(), "");
}

TEST(CpuBackend, DescribesNoCallThatItHasNoKernelFor) {
  const auto backend = MakeCpuBackend({});
  const absl::Status status =
      backend->Describe({.operation = "levitate"}, {}, 1, DType::kF32).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(status.message()), testing::AllOf(testing::HasSubstr("the cpu back end"),
                                                            testing::HasSubstr("\"levitate\"")));
  EXPECT_THAT(backend->WithoutKernels(), testing::ElementsAreArray(OperationsWithoutKernels()));
}

// A release runs on machines without AVX-512 too; only this one's choice is tested above.
TEST(CpuBackend, AgreesWithTheReferenceOnEveryInstructionSetOfThisMachine) {
  const auto reference = MakeReferenceBackend(BackendOptions{});
  std::vector<ConformanceRow> rows;
  std::vector<Outputs> expected;
  size_t number = 0;
  for (const ConformanceRow& row : ConformanceRows()) {
    if (number++ % (kSanitized ? 8 : 1) != 0) continue;
    rows.push_back(row);
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

TEST(CpuBackend, AttentionOfASampleADocumentOrARowHasTheBitsOfItAloneOnEveryInstructionSet) {
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().DeInit();
    const auto backend = MakeCpuBackend(BackendOptions{.threads = 2});
    for (const Elements elements : {Elements::kFloat32, Elements::kBfloat16}) {
      EXPECT_EQ(PaddingChanges(*backend, elements), "");
      EXPECT_EQ(CrossPaddingChanges(*backend, elements), "");
      EXPECT_EQ(OtherDocumentsChange(*backend, elements, 0.0), "");
    }
    EXPECT_EQ(OtherRowsChange(*backend, Elements::kFloat32, 3e-5), "");
    EXPECT_EQ(OtherRowsChange(*backend, Elements::kBfloat16, kRoundedInside), "");
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
      const Tensor residual = bench.Normal(shape), apart = bench.Blank(shape),
                   sum = bench.Blank(shape);
      // The last operand is the residual, where there is one.
      const auto expect_sum = [&](TensorCall call, const Attributes& with_residual) {
        call.outputs = {apart};
        RunOn(*backend, call);
        RunOn(*backend, {.operation = "add", .inputs = {residual, apart}, .outputs = {apart}});
        call.attributes = with_residual;
        call.inputs.push_back(residual);
        call.outputs = {sum};
        RunOn(*backend, call);
        EXPECT_EQ(Disagreement({bench.Read("", sum)}, {bench.Read("", apart)}, 0.0), "")
            << call.operation << " of " << rows << " rows of " << width;
      };
      expect_sum({.operation = "linear",
                  .attributes = ToAttributes(LinearAttributes{.bias = true}),
                  .inputs = {bench.Normal({rows, 70}), Whole(bench.Normal({width, 70})),
                             Whole(bench.Normal({width}))}},
                 ToAttributes(LinearAttributes{.bias = true, .residual = true}));
      expect_sum({.operation = "layer_norm_input_gradient",
                  .inputs = {bench.Normal(shape), bench.Normal(shape), Whole(bench.Normal({width})),
                             bench.Normal({rows}), bench.Normal({rows})}},
                 ToAttributes(LayerNormGradientAttributes{.residual = true}));
    }
  }
}

// Whether a sum finds room in place depends on who else reads its operands, hence on the cut. It
// began with a zero where it did not, and gave another zero of two negative ones.
TEST(CpuBackend, ASumHasTheSameBitsInMemoryOfItsOwnAndInPlace) {
  for (const auto make : {MakeReferenceBackend, MakeCpuBackend}) {
    const auto backend = make(BackendOptions{});
    Bench bench(*backend);
    const Tensor a = bench.From({-0.0f, -0.0f, 1.5f}, {3}),
                 b = bench.From({-0.0f, 0.0f, 2.0f}, {3});
    const Tensor apart = bench.Blank({3});
    RunOn(*backend, {.operation = "add", .inputs = {a, b}, .outputs = {apart}});
    RunOn(*backend, {.operation = "add", .inputs = {a, b}, .outputs = {b}});
    EXPECT_EQ(std::memcmp(apart.raw(), b.raw(), static_cast<size_t>(b.bytes())), 0);
    EXPECT_TRUE(std::signbit(b.data<float>()[0]));
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
  RunOn(*backend, {.operation = "linear", .inputs = {x, Whole(weight)}, .outputs = {y}});
  ASSERT_TRUE(backend->Synchronize().ok());
  const auto workspace = static_cast<size_t>(MemoryKind::kWorkspace);
  EXPECT_GT(backend->allocator().Use().current[workspace], 0);
  const Tensor qkv = bench.Normal({2048, 12}), out = bench.Blank({2048, 4});
  RunOn(*backend,
        {.operation = "attention", .inputs = {qkv}, .outputs = {out, bench.Blank({2048})}});
  EXPECT_EQ(backend->Synchronize().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_FALSE(backend->Synchronize().ok()) << "whoever asks next must hear of it as well";
}

// Who had a large room once kept all operations from having smaller ones for their threads.
TEST(CpuBackend, FurtherThreadsHaveTheRoomsThatFitIntoTheSpareMemory) {
  const auto backend =
      MakeCpuBackend(BackendOptions{.threads = 8, .memory_limit_bytes = int64_t{1} << 30});
  Bench bench(*backend);
  const auto room = [](int64_t context) {
    return static_cast<int64_t>(sizeof(float)) * AttentionScratch::Forward(context, 16);
  };
  const auto taken = [&](int64_t context) {
    const Tensor qkv = bench.Normal({context, 48}), out = bench.Blank({context, 16});
    RunOn(*backend,
          {.operation = "attention", .inputs = {qkv}, .outputs = {out, bench.Blank({context})}});
    EXPECT_TRUE(backend->Synchronize().ok());
    return backend->allocator().Use().current[static_cast<size_t>(MemoryKind::kWorkspace)];
  };
  ASSERT_GT(room(64), kSmallRoomBytes);
  ASSERT_GT(room(512), 3 * room(64));
  backend->UseSpareMemory({.rooms = 3 * room(64)});
  EXPECT_EQ(taken(512), room(512)) << "one thread's";
  EXPECT_EQ(taken(64), room(512) + 3 * room(64)) << "four threads'";
  EXPECT_EQ(taken(512), room(512)) << "what is not needed makes place";
}

// Seen: one job ran out of memory inside of an operation, and every later job on that server failed
// with the same words until it was restarted. The workspace kept its first refusal for good.
TEST(CpuBackend, ARefusedWorkspaceEndsWithTheCellThatWasRefused) {
  const auto backend = MakeCpuBackend(BackendOptions{.threads = 1, .memory_limit_bytes = 500000});
  Bench bench(*backend);
  {
    const Tensor qkv = bench.Normal({2048, 12}), out = bench.Blank({2048, 4});
    RunOn(*backend,
          {.operation = "attention", .inputs = {qkv}, .outputs = {out, bench.Blank({2048})}});
    ASSERT_EQ(backend->Synchronize().code(), absl::StatusCode::kResourceExhausted);
  }
  backend->EndCell();
  const auto workspace = static_cast<size_t>(MemoryKind::kWorkspace);
  EXPECT_EQ(backend->allocator().Use().current[workspace], 0);
  const Tensor x = bench.Normal({64, 64}), y = bench.Blank({64, 64});
  const Tensor weight = bench.Normal({64, 64});
  RunOn(*backend, {.operation = "linear", .inputs = {x, Whole(weight)}, .outputs = {y}});
  const absl::Status status = backend->Synchronize();
  EXPECT_TRUE(status.ok()) << status;
}

// Cards sum a token's rows by a tree, so the rows above allow for another order; here it is the
// reference's.
TEST(CpuBackend, AddsTheRowsOfATokenInTheirOrder) {
  const auto sums = [](Backend& backend) {
    Bench bench(backend);
    const Tensor d_token = bench.Blank({5, 33}), d_position = bench.Blank({64, 33});
    for (const Tensor& table : {d_token, d_position}) backend.Fill(table, 0.0f);
    RunOn(backend, {.operation = "embedding_weight_gradient",
                    .inputs = {bench.Indices(256, 5), bench.Normal({256, 33})},
                    .adds = {d_token, d_position},
                    .samples = 4});
    return bench.Read("d_token", d_token).values;
  };
  EXPECT_EQ(sums(*MakeCpuBackend({.threads = 2})), sums(*MakeReferenceBackend({})));
}

TEST(CpuBackend, HasTheKernelsThatTheReferenceHas) {
  EXPECT_EQ(cpu::Kernels().operations(), reference::Kernels().operations());
}

}  // namespace
}  // namespace stagecoach::conformance
