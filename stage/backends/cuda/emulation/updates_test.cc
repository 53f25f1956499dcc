// Fills, optimizers and norms over many tensors: the same bits as one after the other, in a launch
// or two.
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "stage/backends/conformance/harness.h"
#include "stage/backends/cuda/emulation/emulated_backend.h"
#include "stage/backends/cuda/launch_config.h"

namespace stagecoach::cuda {
namespace {

using conformance::Bench;
using conformance::Disagreement;
using conformance::Outputs;

// Shorter than a pack, none at all, a whole chunk, one more, several.
const std::vector<int64_t> kSizes = {
    1, kUpdateChunk, 0, 7, kUpdateChunk + 1, 3 * kUpdateChunk - 5, 64, kNormChunk + 3};

std::vector<AdamWArgs> AdamWOf(Bench& bench) {
  std::vector<AdamWArgs> all;
  for (const int64_t n : kSizes) {
    all.push_back({.value = bench.Normal({n}),
                   .gradient = bench.Normal({n}),
                   .m = bench.Normal({n}, 0.1f),
                   .v = bench.From(std::vector<float>(n, 0.25f), {n}),
                   .gradient_scale = 0.5f,
                   .learning_rate = 0.01f,
                   .beta1 = 0.9f,
                   .beta2 = 0.99f,
                   .epsilon = 1e-8f,
                   .weight_decay = n % 2 == 0 ? 0.1f : 0.0f,
                   .correction1 = 0.19f,
                   .correction2 = 0.0199f});
    if (n != 7) all.back().compute = bench.Blank({n}, DType::kBF16);
  }
  return all;
}

Outputs ResultsOf(Backend& backend, Bench& bench, const std::vector<AdamWArgs>& all) {
  Outputs outputs;
  for (const AdamWArgs& args : all) {
    for (const Tensor& tensor : {args.value, args.m, args.v}) {
      outputs.push_back(bench.Read("state", tensor));
    }
    if (!args.compute.valid()) continue;
    const Tensor wide = bench.Blank(args.compute.shape());
    backend.Convert(args.compute, wide);
    outputs.push_back(bench.Read("compute", wide));
  }
  return outputs;
}

TEST(Updates, AllAreFilledInOneLaunch) {
  const auto backend = MakeEmulatedBackend({});
  Bench bench(*backend);
  Tensors all;
  for (const int64_t n : kSizes) all.push_back(bench.Blank({n}));
  for (const float value : {0.0f, 3.0f}) {
    const uint64_t before = emulation::Launches();
    backend->FillAll(all, value);
    EXPECT_EQ(emulation::Launches() - before, 1u);
    for (const Tensor& tensor : all) {
      const std::vector<double> expected(static_cast<size_t>(tensor.elements()), value);
      EXPECT_EQ(bench.Read("filled", tensor).values, expected);
    }
  }
  // Another list is another table.
  backend->FillAll(std::span<const Tensor>(all).first(2), 4.0f);
  EXPECT_EQ(bench.Read("first", all[0]).values[0], 4.0);
  EXPECT_EQ(bench.Read("of others", all[3]).values[0], 3.0);
  backend->FillAll({}, 1.0f);
}

TEST(Updates, AdamWOfAllHasTheBitsOfOneAfterTheOther) {
  const auto together = MakeEmulatedBackend({}), apart = MakeEmulatedBackend({});
  Bench a(*together), b(*apart);
  std::vector<AdamWArgs> all = AdamWOf(a);
  const std::vector<AdamWArgs> one = AdamWOf(b);
  for (int step = 0; step < 2; ++step) {
    const uint64_t before = emulation::Launches();
    together->AdamWAll(all);
    EXPECT_EQ(emulation::Launches() - before, 1u);
    for (const AdamWArgs& args : one) apart->AdamW(args);
    EXPECT_EQ(Disagreement(ResultsOf(*together, a, all), ResultsOf(*apart, b, one), 0.0), "");
  }
  // Another list, and other factors for some: still each its own.
  all.erase(all.begin(), all.begin() + 3);
  all[1].learning_rate = 0.5f;
  together->AdamWAll(all);
  for (size_t i = 0; i < all.size(); ++i) {
    AdamWArgs args = one[i + 3];
    args.learning_rate = all[i].learning_rate;
    apart->AdamW(args);
  }
  const std::vector<AdamWArgs> rest(one.begin() + 3, one.end());
  EXPECT_EQ(Disagreement(ResultsOf(*together, a, all), ResultsOf(*apart, b, rest), 0.0), "");
}

TEST(Updates, SgdOfAllHasTheBitsOfOneAfterTheOther) {
  const auto run = [](bool together, bool momentum) {
    const auto backend = MakeEmulatedBackend({});
    Bench bench(*backend);
    std::vector<SgdArgs> all;
    for (const int64_t n : kSizes) {
      all.push_back({.value = bench.Normal({n}),
                     .gradient = bench.Normal({n}),
                     .learning_rate = 0.1f,
                     .momentum = 0.9f,
                     .weight_decay = n % 2 == 0 ? 0.1f : 0.0f,
                     .compute = bench.Blank({n}, DType::kBF16)});
      if (momentum) all.back().velocity = bench.Normal({n});
    }
    const uint64_t before = emulation::Launches();
    if (together) {
      backend->SgdAll(all);
      EXPECT_EQ(emulation::Launches() - before, 1u);
    } else {
      for (const SgdArgs& args : all) backend->Sgd(args);
    }
    Outputs outputs;
    for (const SgdArgs& args : all) {
      outputs.push_back(bench.Read("value", args.value));
      if (momentum) outputs.push_back(bench.Read("velocity", args.velocity));
    }
    return outputs;
  };
  for (const bool momentum : {false, true}) {
    EXPECT_EQ(Disagreement(run(true, momentum), run(false, momentum), 0.0), "") << momentum;
  }
}

TEST(Updates, LambOfAllHasTheBitsOfOneAfterTheOtherInFourLaunches) {
  const auto run = [](bool together) {
    const auto backend = MakeEmulatedBackend({});
    Bench bench(*backend);
    std::vector<LambArgs> all;
    for (const int64_t n : kSizes) {
      all.push_back({.value = bench.Normal({n}),
                     .m = bench.Normal({n}, 0.1f),
                     .v = bench.From(std::vector<float>(n, 0.25f), {n}),
                     .gradient = bench.Normal({n}),
                     .norms = bench.Blank({2}, DType::kF64),
                     .learning_rate = 0.1f,
                     .beta1 = 0.9f,
                     .beta2 = 0.99f,
                     .epsilon = 1e-6f,
                     .adapt = n % 2 == 0});
    }
    // Twice: what the tables keep must be no other table's.
    for (int step = 0; step < 2; ++step) {
      const uint64_t before = emulation::Launches();
      if (together) {
        backend->LambAll(all);
        EXPECT_EQ(emulation::Launches() - before, 4u);
      } else {
        for (const LambArgs& args : all) backend->Lamb(args);
      }
    }
    Outputs outputs;
    for (const LambArgs& args : all) {
      for (const Tensor& tensor : {args.value, args.m, args.v, args.norms}) {
        outputs.push_back(bench.Read("state", tensor));
      }
    }
    return outputs;
  };
  EXPECT_EQ(Disagreement(run(true), run(false), 0.0), "");
}

TEST(Updates, RmsPropAveragesAndSwapsOfAllAreALaunchEach) {
  const auto run = [](bool together) {
    const auto backend = MakeEmulatedBackend({});
    Bench bench(*backend);
    std::vector<RmsPropArgs> steps;
    std::vector<AverageArgs> averages;
    std::vector<Backend::SwapArgs> swaps;
    for (const int64_t n : kSizes) {
      steps.push_back({.value = bench.Normal({n}),
                       .gradient = bench.Normal({n}),
                       .square = bench.From(std::vector<float>(n, 1.0f), {n}),
                       .velocity = n % 2 == 0 ? bench.Normal({n}) : Tensor(),
                       .inner_rate = 0.1f,
                       .outer_rate = 1.0f,
                       .decay = 0.9f,
                       .momentum = 0.9f,
                       .inside = 1.0f});
      averages.push_back({steps.back().value, bench.Normal({n}), 0.1f});
      swaps.push_back({steps.back().value, averages.back().average});
    }
    const uint64_t before = emulation::Launches();
    if (together) {
      backend->RmsPropAll(steps);
      backend->AverageAll(averages);
      backend->SwapAll(swaps);
      EXPECT_EQ(emulation::Launches() - before, 3u);
    } else {
      for (const RmsPropArgs& args : steps) backend->RmsProp(args);
      for (const AverageArgs& args : averages) backend->Average(args);
      for (const Backend::SwapArgs& args : swaps) backend->Swap(args.a, args.b);
    }
    Outputs outputs;
    for (size_t i = 0; i < steps.size(); ++i) {
      for (const Tensor& tensor : {steps[i].value, steps[i].square, averages[i].average}) {
        outputs.push_back(bench.Read("state", tensor));
      }
    }
    return outputs;
  };
  EXPECT_EQ(Disagreement(run(true), run(false), 0.0), "");
}

TEST(Updates, NormsOfAllHaveTheBitsOfOneAfterTheOther) {
  const auto backend = MakeEmulatedBackend({});
  Bench bench(*backend);
  std::vector<Backend::NormArgs> all;
  Outputs apart, together;
  for (const int64_t n : kSizes) {
    all.push_back({bench.Normal({n}), bench.Blank({1}, DType::kF64)});
    backend->SquaredNorm(all.back().tensor, all.back().result);
    apart.push_back(bench.Read("norm", all.back().result));
    all.back().result = bench.Blank({1}, DType::kF64);
  }
  const uint64_t before = emulation::Launches();
  backend->SquaredNorms(all);
  EXPECT_EQ(emulation::Launches() - before, 2u);
  for (const Backend::NormArgs& args : all) together.push_back(bench.Read("norm", args.result));
  EXPECT_EQ(Disagreement(together, apart, 0.0), "");
  EXPECT_EQ(together[2].values[0], 0.0) << "no elements";
}

// Seen: a card that had no room for a table of parameters was taken for broken, so one job that was
// too large ended the stage server.
TEST(Updates, ATableThatFindsNoRoomIsTheCellsErrorAlone) {
  const auto backend = MakeEmulatedBackend({.memory_limit_bytes = 4096});
  Bench bench(*backend);
  const Tensors all(64, bench.Blank({8}));
  {
    const Tensor most = bench.Blank({(4096 - 64) / 4});
    backend->FillAll(all, 1.0f);
    const absl::Status refused = backend->Synchronize();
    EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted) << refused;
    EXPECT_THAT(std::string(refused.message()),
                testing::AllOf(testing::HasSubstr("device cuda:0, Fill: "),
                               testing::HasSubstr("1536 bytes")));
    EXPECT_EQ(backend->Synchronize(), refused) << "whoever asks next must hear of it as well";
    EXPECT_TRUE(backend->Fault().ok());
  }
  backend->EndCell();
  const absl::Status status = backend->Synchronize();
  EXPECT_TRUE(status.ok()) << status;
  backend->FillAll(all, 2.0f);
  EXPECT_EQ(bench.Read("filled", all[0]).values, std::vector<double>(8, 2.0));
  const auto workspace = static_cast<size_t>(MemoryKind::kWorkspace);
  EXPECT_GT(backend->allocator().Use().current[workspace], 0);
  backend->EndCell();
  EXPECT_EQ(backend->allocator().Use().current[workspace], 0) << "tables are of a cell";
}

}  // namespace
}  // namespace stagecoach::cuda
