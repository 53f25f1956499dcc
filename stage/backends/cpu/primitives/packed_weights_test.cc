// Convolutions whose weight is a parameter: packed once for its values, and never again read from
// an old packing.
#include "stage/backends/cpu/primitives/packed_weights.h"

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "operations/images/convolution.h"
#include "stage/backends/conformance/harness.h"
#include "stage/backends/cpu/cpu_backend.h"
#include "stage/backends/cpu/testing/avx2.h"
#include "stage/backends/operation_testing.h"

namespace stagecoach::conformance {
namespace {

constexpr int64_t kSamples = 3, kSide = 7, kChannels = 32;
constexpr UpdateNumbers kHalf{.learning_rate = 0.5};
const Shape kImages = {kSamples * kSide, kSide, kChannels};
const Shape kWeight = {kChannels, 3, 3, kChannels};

Attributes Steps() { return ToAttributes(ConvolutionAttributes{.steps = {.padding = {1, 1}}}); }
Attributes GradientSteps() {
  return ToAttributes(
      ConvolutionInputGradientAttributes{.steps = {.padding = {1, 1}}, .image = {kSide, kSide}});
}

int64_t WorkspaceOf(Backend& backend) {
  return backend.allocator().Use().current[static_cast<size_t>(MemoryKind::kWorkspace)];
}

// One weight, what it is multiplied with, and what comes out forward and backward.
struct Convolved {
  Convolved(cpu::CpuBackend& backend, Elements elements = Elements::kFloat32)
      : backend(backend),
        bench(backend, elements),
        weight(bench.Activation(kWeight, 0.1f)),
        x(bench.Activation(kImages)),
        y(bench.BlankActivation(kImages)),
        dx(bench.BlankActivation(kImages)),
        forward(PrepareOn(backend, {.operation = "convolution",
                                    .attributes = Steps(),
                                    .inputs = {x, Whole(weight)},
                                    .outputs = {y},
                                    .samples = kSamples})),
        gradient(PrepareOn(backend, {.operation = "convolution_input_gradient",
                                     .attributes = GradientSteps(),
                                     .inputs = {x, Whole(weight)},
                                     .outputs = {dx},
                                     .samples = kSamples})) {}
  Outputs Run() {
    forward();
    gradient();
    return {bench.Read("y", y), bench.Read("dx", dx)};
  }
  cpu::CpuBackend& backend;
  Bench bench;
  Tensor weight, x, y, dx;
  std::function<void()> forward, gradient;
};

// The same with weights of these bytes that nobody has packed.
Outputs Fresh(const Tensor& weight, Elements elements) {
  cpu::CpuBackend backend(BackendOptions{.threads = 1});
  Convolved fresh(backend, elements);
  std::memcpy(fresh.weight.raw(), weight.raw(), static_cast<size_t>(weight.bytes()));
  return fresh.Run();
}

TEST(PackedWeights, OneServesAllMicroBatchesUntilTheWeightIsUpdated) {
  if (!cpu::HasAvx2()) GTEST_SKIP() << cpu::kNoAvx2;
  cpu::CpuBackend backend(BackendOptions{.threads = 1});
  Convolved convolved(backend);
  convolved.weight.buffer()->CountVersions();
  Convolved other(
      backend);  // another call of the same shape, as a recomputation's, on another weight
  other.weight.buffer()->CountVersions();
  for (int step = 1; step <= 3; ++step) {
    for (int micro_batch = 0; micro_batch < 4; ++micro_batch) {
      convolved.Run();
      other.Run();
    }
    EXPECT_EQ(backend.packed_weights().made(), 4 * step) << "forward and gradient of two weights";
    for (const Convolved* each : {&convolved, &other}) {
      UpdateOn(backend, {.operation = "sgd_update", .adds = {each->weight, each->weight}}, kHalf);
    }
  }
}

// What may write a parameter, or a bfloat16 copy of one, by the back end's own functions.
struct Write {
  const char* name;
  Elements elements;
  std::function<void(Bench& bench, const Tensor& weight)> run;
};

std::vector<Write> Writes() {
  using E = Elements;
  const auto like = [](Bench& bench) { return bench.Normal(kWeight); };
  return {
      {"Fill", E::kFloat32, [](Bench& b, const Tensor& w) { b.backend().Fill(w, 0.25f); }},
      {"CopyFromHost", E::kFloat32,
       [=](Bench& b, const Tensor& w) { b.backend().CopyFromHost(like(b).span(), w); }},
      {"CopyFromHost of a part", E::kFloat32,
       [=](Bench& b, const Tensor& w) {
         const Tensor part = w.Slice(64, Shape{128});
         b.backend().CopyFromHost(like(b).Slice(0, Shape{128}).span(), part);
       }},
      {"Convert", E::kFloat32, [=](Bench& b, const Tensor& w) { b.backend().Convert(like(b), w); }},
      {"Convert to bfloat16", E::kBfloat16,
       [=](Bench& b, const Tensor& w) { b.backend().Convert(like(b), w); }},
      {"Swap", E::kFloat32, [=](Bench& b, const Tensor& w) { b.backend().Swap(w, like(b)); }},
      {"Swap, second", E::kFloat32,
       [=](Bench& b, const Tensor& w) { b.backend().Swap(like(b), w); }},
      {"Average", E::kFloat32,
       [=](Bench& b, const Tensor& w) {
         UpdateOn(b.backend(), {.operation = "average_update", .inputs = {like(b)}, .adds = {w}},
                  kHalf);
       }},
      {"Sgd", E::kFloat32,
       [=](Bench& b, const Tensor& w) {
         UpdateOn(b.backend(), {.operation = "sgd_update", .adds = {like(b), w}}, kHalf);
       }},
      {"Sgd's copy", E::kBfloat16,
       [=](Bench& b, const Tensor& w) {
         UpdateOn(b.backend(), {.operation = "sgd_update", .adds = {like(b), like(b), w}}, kHalf);
       }},
      {"AdamW", E::kFloat32,
       [=](Bench& b, const Tensor& w) {
         const Tensor m = like(b), v = like(b);
         b.backend().Fill(v, 1.0f);
         UpdateOn(b.backend(), {.operation = "adamw_update", .adds = {like(b), w, m, v}}, kHalf);
       }},
      {"AdamW's copy", E::kBfloat16,
       [=](Bench& b, const Tensor& w) {
         const Tensor m = like(b), v = like(b);
         b.backend().Fill(v, 1.0f);
         UpdateOn(b.backend(), {.operation = "adamw_update", .adds = {like(b), like(b), m, v, w}},
                  kHalf);
       }},
      {"RmsProp", E::kFloat32,
       [=](Bench& b, const Tensor& w) {
         const Tensor square = like(b);
         b.backend().Fill(square, 1.0f);
         UpdateOn(b.backend(), {.operation = "rmsprop_update", .adds = {like(b), w, square}},
                  kHalf);
       }},
      {"Lamb", E::kFloat32,
       [=](Bench& b, const Tensor& w) {
         const Tensor v = like(b);
         b.backend().Fill(v, 1.0f);
         UpdateOn(b.backend(), {.operation = "lamb_update", .adds = {like(b), w, like(b), v}},
                  kHalf);
       }},
  };
}

// A packing of the values before would be a wrong result that nobody sees.
TEST(PackedWeights, EveryWriteOfTheBackEndIsSeenAtTheSameAddress) {
  if (!cpu::HasAvx2()) GTEST_SKIP() << cpu::kNoAvx2;
  for (const Write& write : Writes()) {
    SCOPED_TRACE(write.name);
    cpu::CpuBackend backend(BackendOptions{.threads = 1});
    Convolved convolved(backend, write.elements);
    convolved.weight.buffer()->CountVersions();
    const Outputs before = convolved.Run();
    ASSERT_EQ(backend.packed_weights().made(), 2) << "nothing is kept that could be old";
    EXPECT_EQ(Disagreement(before, Fresh(convolved.weight, write.elements), 0.0), "");
    write.run(convolved.bench, convolved.weight);
    const Outputs after = convolved.Run();
    EXPECT_EQ(Disagreement(after, Fresh(convolved.weight, write.elements), 0.0), "");
    EXPECT_NE(Disagreement(after, before, 0.0), "") << "the write has changed nothing";
  }
}

TEST(PackedWeights, AWeightWithoutVersionsIsPackedForEachCall) {
  cpu::CpuBackend backend(BackendOptions{.threads = 1});
  Convolved convolved(backend);
  const Outputs before = convolved.Run();
  for (int64_t i = 0; i < convolved.weight.elements(); ++i) {
    convolved.weight.data<float>()[i] *= 2.0f;  // past the back end
  }
  const Outputs after = convolved.Run();
  EXPECT_EQ(Disagreement(after, Fresh(convolved.weight, Elements::kFloat32), 0.0), "");
  EXPECT_NE(Disagreement(after, before, 0.0), "");
  EXPECT_EQ(backend.packed_weights().made(), 0);
}

TEST(PackedWeights, WhoWritesPastTheBackEndSaysSo) {
  cpu::CpuBackend backend(BackendOptions{.threads = 1});
  Convolved convolved(backend);
  convolved.weight.buffer()->CountVersions();
  convolved.Run();
  std::memset(convolved.weight.raw(), 0, static_cast<size_t>(convolved.weight.bytes()));
  convolved.weight.buffer()->Rewritten();
  EXPECT_EQ(Disagreement(convolved.Run(), Fresh(convolved.weight, Elements::kFloat32), 0.0), "");
}

TEST(PackedWeights, GoWithTheCell) {
  cpu::CpuBackend backend(BackendOptions{.threads = 1});
  Convolved convolved(backend);
  convolved.weight.buffer()->CountVersions();
  convolved.Run();
  EXPECT_GE(WorkspaceOf(backend), 2 * convolved.weight.bytes());
  backend.EndCell();
  EXPECT_EQ(WorkspaceOf(backend), 0);
  EXPECT_EQ(Disagreement(convolved.Run(), Fresh(convolved.weight, Elements::kFloat32), 0.0), "");
}

// Layers are profiled one after the other, and nobody ends a cell between them.
TEST(PackedWeights, OfAParameterThatIsGoneMakeRoomForTheNext) {
  cpu::CpuBackend backend(BackendOptions{.threads = 1});
  int64_t most = 0;
  for (int layer = 0; layer < 5; ++layer) {
    Convolved convolved(backend);
    convolved.weight.buffer()->CountVersions();
    EXPECT_EQ(Disagreement(convolved.Run(), Fresh(convolved.weight, Elements::kFloat32), 0.0), "");
    if (layer == 0) most = WorkspaceOf(backend);
    EXPECT_EQ(WorkspaceOf(backend), most) << "layer " << layer;
  }
}

// Where memory is limited it has to be said that there is room.
TEST(PackedWeights, AreKeptWhereTheMemoryHasNoLimitOrTheJobHasRoom) {
  if (!cpu::HasAvx2()) GTEST_SKIP() << cpu::kNoAvx2;
  for (const int64_t limit : {0, 1 << 20}) {
    cpu::CpuBackend backend(BackendOptions{.threads = 1, .memory_limit_bytes = limit});
    Convolved convolved(backend);
    convolved.weight.buffer()->CountVersions();
    const auto expect_kept = [&](bool kept, const char* when) {
      EXPECT_EQ(backend.packed_weights().KeepsConvolution(convolved.weight), kept)
          << limit << ", " << when;
      EXPECT_EQ(Disagreement(convolved.Run(), Fresh(convolved.weight, Elements::kFloat32), 0.0), "")
          << limit << ", " << when;
    };
    expect_kept(limit == 0, "before it is said");
    backend.UseSpareMemory({.packed_weights = true});
    expect_kept(true, "with room");
    backend.UseSpareMemory({.packed_weights = false});
    expect_kept(false, "without");
    EXPECT_EQ(backend.packed_weights().made(), 2);
    backend.EndCell();
    expect_kept(limit == 0, "of the next job");
  }
}

TEST(PackedWeights, ARefusalIsToldUntilTheCellEnds) {
  if (!cpu::HasAvx2()) GTEST_SKIP() << cpu::kNoAvx2;
  const int64_t operands = 4 * (3 * kImages.elements() + kWeight.elements());
  cpu::CpuBackend backend(BackendOptions{
      .threads = 1, .memory_limit_bytes = operands + 3 * 4 * kWeight.elements() / 2});
  backend.UseSpareMemory({.packed_weights = true});
  Convolved convolved(backend);
  convolved.weight.buffer()->CountVersions();
  convolved.forward();
  EXPECT_TRUE(backend.Synchronize().ok()) << backend.Synchronize();
  convolved.gradient();
  EXPECT_EQ(backend.Synchronize().code(), absl::StatusCode::kResourceExhausted);
  backend.EndCell();
  EXPECT_TRUE(backend.Synchronize().ok());
  convolved.gradient();
  EXPECT_TRUE(backend.Synchronize().ok()) << backend.Synchronize();
}

}  // namespace
}  // namespace stagecoach::conformance
