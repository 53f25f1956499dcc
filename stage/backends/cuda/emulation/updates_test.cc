// Fills, optimizers and norms over many tensors: the same bits as one after the other, in a launch
// or two.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "operations/updates/adafactor_update.h"
#include "operations/updates/adamw_update.h"
#include "operations/updates/lamb_update.h"
#include "operations/updates/rmsprop_update.h"
#include "operations/updates/sgd_update.h"
#include "stage/backends/conformance/harness.h"
#include "stage/backends/cuda/emulation/emulated_backend.h"
#include "stage/backends/cuda/launch_config.h"
#include "stage/backends/update_calls.h"

namespace stagecoach::cuda {
namespace {

using conformance::Bench;
using conformance::Disagreement;
using conformance::Outputs;

// Shorter than a pack, none at all, a whole chunk, one more, several.
const std::vector<int64_t> kSizes = {
    1, kUpdateChunk, 0, 7, kUpdateChunk + 1, 3 * kUpdateChunk - 5, 64, kNormChunk + 3};

// Parameters of these sizes, of which each second one decays, with states of normal numbers, or of
// one number.
template <typename Attributes>
std::vector<UpdateCall> CallsOf(Bench& bench, const std::string& operation, Attributes attributes,
                                const std::vector<std::optional<float>>& states,
                                bool copies = true) {
  const double weight_decay = attributes.weight_decay;
  std::vector<UpdateCall> calls;
  for (const int64_t n : kSizes) {
    attributes.weight_decay = n % 2 == 0 ? weight_decay : 0;
    UpdateCall call{.operation = operation,
                    .attributes = ToAttributes(attributes),
                    .adds = {bench.Normal({n}), bench.Normal({n})}};
    for (const std::optional<float> start : states) {
      call.adds.push_back(start.has_value() ? bench.From(std::vector<float>(n, *start), {n})
                                            : bench.Normal({n}, 0.1f));
    }
    if (copies && n != 7) call.adds.push_back(bench.Blank({n}, DType::kBF16));
    calls.push_back(std::move(call));
  }
  return calls;
}

Outputs ResultsOf(Backend& backend, Bench& bench, const std::vector<UpdateCall>& calls) {
  Outputs outputs;
  for (const UpdateCall& call : calls) {
    for (size_t i = call.inputs.empty() ? 1 : 0; i < call.adds.size(); ++i) {
      Tensor tensor = call.adds[i];
      if (tensor.dtype() == DType::kBF16) {
        tensor = bench.Blank(tensor.shape());
        backend.Convert(call.adds[i], tensor);
      }
      outputs.push_back(bench.Read("changed", tensor));
    }
  }
  return outputs;
}

constexpr UpdateNumbers kFirst{.applied = 1, .learning_rate = 0.01, .gradient_scale = 0.5};
constexpr UpdateNumbers kSecond{.applied = 2, .learning_rate = 0.02, .gradient_scale = 0.5};

// Two steps of all in `launches` each, and of one after the other.
template <typename Make>
void ExpectTheBitsOfOneAfterTheOther(uint64_t launches, Make make) {
  const auto together = MakeEmulatedBackend({}), apart = MakeEmulatedBackend({});
  Bench a(*together), b(*apart);
  const std::vector<UpdateCall> all = make(a), each = make(b);
  const absl::StatusOr<PreparedUpdates> prepared = PreparedUpdates::Prepare(*together, all);
  ASSERT_TRUE(prepared.ok()) << prepared.status();
  std::vector<PreparedUpdates> ones;
  for (const UpdateCall& call : each) {
    absl::StatusOr<PreparedUpdates> one = PreparedUpdates::Prepare(*apart, {call});
    ASSERT_TRUE(one.ok()) << one.status();
    ones.push_back(*std::move(one));
  }
  // Twice: what the tables keep must be no other table's.
  for (const UpdateNumbers& step : {kFirst, kSecond}) {
    const uint64_t before = emulation::Launches();
    prepared->Run(step);
    EXPECT_EQ(emulation::Launches() - before, launches);
    for (const PreparedUpdates& one : ones) one.Run(step);
    EXPECT_EQ(Disagreement(ResultsOf(*together, a, all), ResultsOf(*apart, b, each), 0.0), "");
  }
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
  ExpectTheBitsOfOneAfterTheOther(1, [](Bench& bench) {
    return CallsOf(bench, "adamw_update",
                   AdamWUpdateAttributes{.beta1 = 0.9, .beta2 = 0.99, .weight_decay = 0.1},
                   {std::nullopt, 0.25f});
  });
}

// With other factors for some, each has its own.
TEST(Updates, WithOtherFactorsAreOtherLaunches) {
  ExpectTheBitsOfOneAfterTheOther(3, [](Bench& bench) {
    std::vector<UpdateCall> calls =
        CallsOf(bench, "adamw_update", AdamWUpdateAttributes{.beta2 = 0.99}, {std::nullopt, 0.25f});
    calls[3].attributes = ToAttributes(AdamWUpdateAttributes{.beta1 = 0.5, .beta2 = 0.99});
    return calls;
  });
}

TEST(Updates, SgdOfAllHasTheBitsOfOneAfterTheOther) {
  for (const bool momentum : {false, true}) {
    std::vector<std::optional<float>> states;
    if (momentum) states.push_back(std::nullopt);
    ExpectTheBitsOfOneAfterTheOther(1, [&](Bench& bench) {
      return CallsOf(bench, "sgd_update",
                     SgdUpdateAttributes{.momentum = momentum ? 0.9 : 0.0, .weight_decay = 0.1},
                     states);
    });
  }
}

TEST(Updates, LambOfAllHasTheBitsOfOneAfterTheOtherInFourLaunches) {
  ExpectTheBitsOfOneAfterTheOther(4, [](Bench& bench) {
    std::vector<UpdateCall> calls = CallsOf(
        bench, "lamb_update", LambUpdateAttributes{.beta2 = 0.99}, {std::nullopt, 0.25f}, false);
    for (size_t i = 0; i < calls.size(); i += 2) calls[i].attributes.Set("adapt", true);
    return calls;
  });
}

TEST(Updates, RmsPropOfAllHasTheBitsOfOneAfterTheOther) {
  for (const bool momentum : {false, true}) {
    std::vector<std::optional<float>> states = {1.0f};
    if (momentum) states.push_back(std::nullopt);
    ExpectTheBitsOfOneAfterTheOther(1, [&](Bench& bench) {
      return CallsOf(bench, "rmsprop_update",
                     RmsPropUpdateAttributes{.momentum = momentum ? 0.9 : 0.0, .weight_decay = 0.1},
                     states);
    });
  }
}

// Three launches average rows, columns and rows' means; two are of norms.
TEST(Updates, AdafactorOfAllHasTheBitsOfOneAfterTheOtherInSevenLaunches) {
  const std::vector<Shape> shapes = {{7},      {40, 33},  {kUpdateChunk + 1}, {0},
                                     {1, 100}, {3, 5, 4}, {70, 130},          {64}};
  for (const double beta1 : {0.0, 0.9}) {
    ExpectTheBitsOfOneAfterTheOther(7, [&](Bench& bench) {
      std::vector<UpdateCall> calls;
      for (const Shape& shape : shapes) {
        calls.push_back({.operation = "adafactor_update",
                         .attributes = ToAttributes(AdafactorUpdateAttributes{.beta1 = beta1}),
                         .adds = {bench.Normal(shape), bench.Normal(shape)}});
        for (const UpdateState& state : AdafactorStates(beta1 != 0, shape)) {
          const auto n = static_cast<size_t>(state.shape.elements());
          calls.back().adds.push_back(bench.From(std::vector<float>(n, 0.25f), state.shape));
        }
        calls.back().adds.push_back(bench.Blank(shape, DType::kBF16));
      }
      return calls;
    });
  }
}

TEST(Updates, AveragesOfAllHaveTheBitsOfOneAfterTheOther) {
  ExpectTheBitsOfOneAfterTheOther(1, [](Bench& bench) {
    std::vector<UpdateCall> calls;
    for (const int64_t n : kSizes) {
      calls.push_back({.operation = "average_update",
                       .inputs = {bench.Normal({n})},
                       .adds = {bench.Normal({n})}});
    }
    return calls;
  });
}

TEST(Updates, SwapsOfAllAreALaunch) {
  const auto backend = MakeEmulatedBackend({});
  Bench bench(*backend);
  std::vector<Backend::SwapArgs> swaps;
  Outputs before, after;
  for (const int64_t n : kSizes) {
    swaps.push_back({bench.Normal({n}), bench.Normal({n})});
    before.push_back(bench.Read("a", swaps.back().b));
    before.push_back(bench.Read("b", swaps.back().a));
  }
  const uint64_t launches = emulation::Launches();
  backend->SwapAll(swaps);
  EXPECT_EQ(emulation::Launches() - launches, 1u);
  for (const Backend::SwapArgs& args : swaps) {
    after.push_back(bench.Read("a", args.a));
    after.push_back(bench.Read("b", args.b));
  }
  EXPECT_EQ(Disagreement(after, before, 0.0), "");
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
