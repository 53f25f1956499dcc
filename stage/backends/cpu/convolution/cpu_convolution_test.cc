// The two ways of a convolution on the cpu beside each other and the reference: by oneDNN's own,
// and by columns.
#include <string_view>

#include "absl/strings/str_cat.h"
#include "base/threads/progress.h"
#include "gtest/gtest.h"
#include "operations/images/convolution.h"
#include "stage/backends/conformance/case_table.h"
#include "stage/backends/cpu/cpu_backend.h"

namespace stagecoach::conformance {
namespace {

using cpu::Convolutions;

CaseCalls ConvolutionCalls(std::string_view name) {
  for (const OperationCase& of : AllCases()) {
    if (of.operation->name() == "convolution" && of.call.name == name) return CallsOfCase(of);
  }
  CHECK(false) << "no case " << name;
  return {};
}

std::unique_ptr<Backend> MakeWith(Convolutions convolutions, int threads = 1) {
  return std::make_unique<cpu::CpuBackend>(BackendOptions{.threads = threads},
                                           cpu::BestBfloat16Products(), convolutions);
}

std::vector<ConformanceRow> ConvolutionRows() {
  std::vector<ConformanceRow> rows;
  for (ConformanceRow& row : ConformanceRows()) {
    if (row.name.find("convolution") != std::string::npos) rows.push_back(std::move(row));
  }
  CHECK(!rows.empty()) << "rows of convolutions";
  return rows;
}

TEST(CpuConvolution, ByColumnsAgreesWithTheReferenceAndWithItself) {
  const auto reference = MakeReferenceBackend(BackendOptions{});
  const auto columns = MakeWith(Convolutions::kByColumns);
  for (const ConformanceRow& row : ConvolutionRows()) {
    const Outputs actual = row.run(*columns);
    EXPECT_EQ(row.Disagreement(actual, row.Expected(*reference)), "") << row.name;
    const auto three = MakeWith(Convolutions::kByColumns, 3);
    EXPECT_EQ(Disagreement(row.run(*three), actual, 0.0), "") << row.name << ", three threads";
  }
}

CaseCalls Images(int64_t samples, int64_t side, int64_t channels, int64_t stride, int64_t groups) {
  OperationCase of = ConvolutionCalls("wide").of;
  of.call.attributes = ToAttributes(ConvolutionAttributes{
      .steps = {.stride = {stride, stride}, .padding = {1, 1}, .groups = groups}, .bias = true});
  of.call.inputs = {Samples({side, side, channels}), Weights({32, 3, 3, channels / groups}),
                    Weights({32})};
  of.call.samples = samples;
  return CallsOfCase(of);
}

Outputs RunAll(Backend& backend, const CaseCalls& calls, Elements elements) {
  Bench bench(backend, elements);
  CaseTable table(bench, calls);
  table.SetGiven();
  Outputs outputs;
  for (const Call& call : calls.All()) {
    table.Run(call);
    for (const Tensor& tensor : table.at(call.outputs)) {
      outputs.push_back(bench.Read(call.operation, tensor));
    }
    for (const Tensor& tensor : table.at(call.adds)) {
      outputs.push_back(bench.Read(call.operation, tensor));
    }
  }
  return outputs;
}

TEST(CpuConvolution, IsTheSameBothWaysAndWithAnyNumberOfThreads) {
  struct Case {
    int64_t samples, side, channels, stride, groups;
  };
  // Many images, and few that are cut into rows (convolution_calls.h).
  for (const Case& c : {Case{21, 14, 32, 1, 1}, Case{21, 9, 32, 2, 1}, Case{21, 4, 64, 1, 1},
                        Case{21, 14, 32, 1, 32}, Case{21, 14, 32, 1, 4}, Case{1, 29, 64, 1, 1},
                        Case{2, 40, 64, 2, 1}, Case{3, 33, 64, 1, 1}}) {
    const CaseCalls calls = Images(c.samples, c.side, c.channels, c.stride, c.groups);
    for (const Elements elements : {Elements::kFloat32, Elements::kBfloat16}) {
      const std::string where = absl::StrCat(
          c.samples, " of ", c.side, "x", c.side, "x", c.channels, ", stride ", c.stride,
          ", groups ", c.groups, elements == Elements::kFloat32 ? "" : ", bfloat16");
      const auto best = MakeWith(Convolutions::kBest);
      const Outputs direct = RunAll(*best, calls, elements);
      for (const Convolutions other : {Convolutions::kDirect, Convolutions::kByColumns}) {
        EXPECT_EQ(Disagreement(direct, RunAll(*MakeWith(other), calls, elements),
                               Tolerances{.exact = 2e-5, .bfloat16 = 2 * kRoundedOnce}),
                  "")
            << where;
      }
      for (const int threads : {2, 3}) {
        const auto others = MakeWith(Convolutions::kBest, threads);
        EXPECT_EQ(Disagreement(RunAll(*others, calls, elements), direct, 0.0), "")
            << where << ", threads " << threads;
      }
    }
  }
}

bool HasWinograd() { return cpu::OneDnnFingerprint().find("avx512") != std::string::npos; }

// The rule of operations/images/winograd.h, seen by the bits: another order of sums rounds
// otherwise.
TEST(CpuConvolution, GoesByWinogradWhereTheShapeSuits) {
  if (!HasWinograd()) GTEST_SKIP() << "this processor has no AVX-512";
  struct Case {
    int64_t side, channels, stride, groups;
    bool suits;
  };
  for (const Case& c :
       {Case{16, 32, 1, 1, true}, Case{14, 48, 1, 1, true}, Case{13, 32, 1, 1, false},
        Case{16, 16, 1, 1, false}, Case{33, 32, 2, 1, false}, Case{16, 64, 1, 2, false}}) {
    const CaseCalls calls = Images(5, c.side, c.channels, c.stride, c.groups);
    const Outputs best = RunAll(*MakeWith(Convolutions::kBest), calls, Elements::kFloat32);
    const Outputs direct = RunAll(*MakeWith(Convolutions::kDirect), calls, Elements::kFloat32);
    EXPECT_EQ(Disagreement(best, direct, 0.0).empty(), !c.suits)
        << c.side << "x" << c.side << "x" << c.channels << ", stride " << c.stride << ", groups "
        << c.groups;
  }
}

// A thread's room for tiles is some megabytes: without memory to spare one thread at a time
// computes, the same bits.
TEST(CpuConvolution, ByWinogradTakesRoomsForFurtherThreadsFromSpareMemoryOnly) {
  if (!HasWinograd()) GTEST_SKIP() << "this processor has no AVX-512";
  const CaseCalls calls = Images(6, 24, 64, 1, 1);
  const Outputs expected = RunAll(*MakeWith(Convolutions::kBest), calls, Elements::kFloat32);
  std::vector<int64_t> peaks;
  for (const int64_t spare : {int64_t{0}, int64_t{1} << 30}) {
    cpu::CpuBackend backend(BackendOptions{.threads = 3, .memory_limit_bytes = int64_t{2} << 30});
    backend.UseSpareMemory({.rooms = spare});
    EXPECT_EQ(Disagreement(RunAll(backend, calls, Elements::kFloat32), expected, 0.0), "") << spare;
    peaks.push_back(backend.allocator().Use().peak[static_cast<size_t>(MemoryKind::kWorkspace)]);
  }
  EXPECT_GT(peaks[1], 2 * peaks[0]);
}

// Whoever waits for a step tells slow from stuck by the ticks, and a sample's image may be large.
TEST(CpuConvolution, ByColumnsTicksForEachBlockOfPlacesInItsGradients) {
  const auto backend = MakeWith(Convolutions::kByColumns);
  Bench bench(*backend);
  const CaseCalls calls = ConvolutionCalls("many_places");
  CaseTable table(bench, calls);
  table.SetGiven();
  const auto blocks = static_cast<uint64_t>(3 * calls.of.call.samples);
  for (const Call& call : calls.backward) {
    ProgressCounter progress;
    const ProgressScope scope(&progress);
    table.Run(call);
    EXPECT_GE(progress.count(), blocks) << call.operation;
  }
}

// A worker widened all images of its share at once: of large ones gigabytes that no forecast had,
// and in a single call.
TEST(CpuConvolution, AShareOfLargeImagesIsWidenedAndComputedImageByImage) {
  OperationCase of = ConvolutionCalls("pointwise").of;
  of.call.inputs = {Samples({1024, 512, 4}), Weights({2, 1, 1, 4})};
  of.call.samples = 9;  // shares of two
  const CaseCalls calls = CallsOfCase(of);
  const auto backend = MakeWith(Convolutions::kBest);
  Bench bench(*backend, Elements::kBfloat16);
  CaseTable table(bench, calls);
  table.SetGiven();
  for (const Call& call : calls.forward) table.Run(call);
  for (const Call& call : calls.backward) {
    ProgressCounter progress;
    const ProgressScope scope(&progress);
    table.Run(call);
    EXPECT_GE(progress.count(), static_cast<uint64_t>(of.call.samples)) << call.operation;
  }
  const int64_t image = int64_t{4} * 1024 * 512 * (4 + 2);  // and its places, widened
  EXPECT_LT(backend->allocator().Use().peak[static_cast<size_t>(MemoryKind::kWorkspace)],
            image * 3 / 2);
}

TEST(CpuConvolution, ByColumnsOfSingleChannelsInFloat32TakesNoRoomForColumnsOrImages) {
  const auto backend = MakeWith(Convolutions::kByColumns);
  Bench bench(*backend);
  const CaseCalls calls = ConvolutionCalls("many_places_depthwise");
  CaseTable table(bench, calls);
  table.SetGiven();
  table.Run(calls.forward[0]);
  for (const Call& call : calls.backward) {
    if (call.operation == "convolution_input_gradient") table.Run(call);
  }
  const int64_t weight_and_least = 4 * 48 + 64;  // by taps, and what a worker has at least
  EXPECT_LE(backend->allocator().Use().peak[static_cast<size_t>(MemoryKind::kWorkspace)],
            weight_and_least);
}

}  // namespace
}  // namespace stagecoach::conformance
