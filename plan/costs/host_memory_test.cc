// What convolutions take on a processor, counted by hand.
#include "plan/costs/host_memory.h"

#include <limits>

#include "gtest/gtest.h"
#include "network/layers/convolution.h"
#include "network/layers/linear.h"
#include "network/layers/pools.h"
#include "network/network_kinds.h"
#include "network/passes/freeze.h"
#include "network/zoo/amoebanet/amoebanet.h"
#include "network/zoo/gpt.h"
#include "network/zoo/resnet.h"
#include "network/zoo/sequence.h"
#include "plan/data/cifar.h"
#include "plan/plan.h"

namespace stagecoach {
namespace {

constexpr HostProfile kBelowAvx512 = {.avx512 = false};

int64_t Bytes(const Network& network, int first, int last, int64_t samples,
              const HostProfile& host = {}) {
  const KernelWorkspace taken = ConvolutionWorkspace(network, first, last, samples, host);
  return taken.room + taken.shared;
}

// A thread's room for so many places that read `row` numbers each. Below AVX-512 the product itself
// takes no scratch.
int64_t Columns(int64_t places, int64_t row) { return (64 << 10) + 4 * places * row; }

Network SmallAmoebanet(Precision precision = Precision::kFloat32) {
  AmoebanetDSpec spec;
  spec.image = {32, 32, 3};
  spec.classes = 10;
  spec.layers = 3;
  spec.filters = 16;
  spec.stem = AmoebanetStem::kSmall;
  return *ExpandNetwork(spec, precision);
}

TEST(HostMemory, HasSharesOfAWeightsGradientForTheSamples) {
  const Network network = SmallAmoebanet();
  // The stem: 3x3 from 3 to 16 channels on 32x32 places; from eight samples on there are eight
  // shares, and few samples are cut into as many, of 256 places at least.
  const int64_t weight = 4 * 9 * 3 * 16, room = Columns(128, 9 * 3);
  const auto stem = [&](int64_t samples) { return Bytes(network, 0, 1, samples, kBelowAvx512); };
  EXPECT_EQ(stem(1), 4 * weight + room);
  EXPECT_EQ(stem(2), 8 * weight + room);
  EXPECT_EQ(stem(3), 6 * weight + room);
  EXPECT_EQ(stem(5), 5 * weight + room);
  EXPECT_EQ(stem(64), 8 * weight + room);
  // The last cell: 1x1 from 192 to 64 channels on 8x8 places, of which four samples make a share.
  const auto cell = [&](int64_t samples) { return Bytes(network, 5, 6, samples, kBelowAvx512); };
  EXPECT_EQ(cell(4), 4 * 192 * 64 + Columns(64, 192));
  EXPECT_EQ(cell(8), 2 * 4 * 192 * 64 + Columns(64, 192));
  EXPECT_EQ(Bytes(network, 6, 7, 8), 0) << "a head without convolutions";
}

Network ResnetOfWidth(int64_t width) {
  return *ExpandNetwork(ResnetSpec{.image = {8, 8, 3}, .classes = 10, .depth = 8, .width = width});
}

// A 3x3 from 64 channels to 64 on images of 16x16, by Winograd's filtering: four images are a call
// of 64 tiles.
TEST(HostMemory, HasARoomForTheTilesOfAWinogradConvolution) {
  const Network network =
      *ExpandNetwork(ResnetSpec{.image = {16, 16, 3}, .classes = 10, .depth = 8, .width = 64});
  const int64_t weight = 4 * 9 * 64 * 64, tile = 4 * 36;
  const auto bytes = [&](int64_t images, int64_t shares) {
    const int64_t operands = 4 * images * 256 * (64 + 64);
    const int64_t room =
        (int64_t{16} << 20) + tile * (64 * 64 + images * 16 * (64 + 64) * 3 / 2) + operands;
    return shares * weight + room + weight;
  };
  EXPECT_EQ(Bytes(network, 1, 2, 8), bytes(4, 8));
  EXPECT_EQ(Bytes(network, 1, 2, 4), bytes(2, 4)) << "two calls for two threads";
  EXPECT_EQ(Bytes(network, 1, 2, 1), bytes(1, 1));
  EXPECT_EQ(Bytes(network, 1, 2, 800), bytes(4, 8)) << "and no more";
}

// Where the library has no kernel for a convolution, a thread takes what 128 places read: 25
// numbers of 512 channels each.
TEST(HostMemory, HasARoomForTheColumnsOfAWideConvolution) {
  const SequenceSpec wide{.layers = {ConvolutionSpec{.out = 16, .kernel = {5}, .padding = {2}},
                                     GlobalPoolSpec{}, LinearSpec{.out = 10}},
                          .image = {16, 16, 512},
                          .classes = 10};
  const int64_t weight = 4 * 25 * 512 * 16, columns = Columns(128, 25 * 512);
  EXPECT_EQ(Bytes(*ExpandNetwork(wide), 0, 1, 1, kBelowAvx512), weight + columns);
  // With AVX-512 the product copies 64 columns of the weight, 1,024 deep.
  EXPECT_EQ(Bytes(*ExpandNetwork(wide), 0, 1, 1), weight + columns + 1024 + 4 * 64 * 1024);
  SequenceSpec small = wide;
  small.image = {4, 4, 512};  // 16 places in all
  EXPECT_EQ(Bytes(*ExpandNetwork(small), 0, 1, 1, kBelowAvx512), weight + Columns(16, 25 * 512));
}

// Symptom: a network that was planned to fit was refused memory within a step. The widest weight
// has the largest shares, the largest images the largest room, and the back end holds both until
// the cell ends; the plan had the larger of two sums.
TEST(HostMemory, HasTheLargestSharesAndTheLargestRoomOfDifferentLayers) {
  const Network network =
      *ExpandNetwork(ResnetSpec{.image = {16, 16, 3}, .classes = 10, .depth = 8, .width = 64});
  const int layers = static_cast<int>(network.layers.size());
  const int64_t block = Bytes(network, 1, 2, 8), share = 4 * 9 * 64 * 64;
  // 3x3 from 256 channels to 256 on 4x4 places: eight samples are one share.
  const int64_t widest = 4 * 9 * 256 * 256;
  EXPECT_EQ(Bytes(network, 3, 4, 8), widest + Columns(16, 9 * 256) + 1024 + 4 * 64 * 1024);
  ASSERT_GT(widest, 8 * share);
  EXPECT_EQ(Bytes(network, 0, layers, 8), block - 8 * share + widest);
}

TEST(HostMemory, HasTheWidenedOperandsOfAWinogradConvolutionInBfloat16) {
  const ResnetSpec spec{.image = {16, 16, 3}, .classes = 10, .depth = 8, .width = 64};
  EXPECT_EQ(Bytes(*ExpandNetwork(spec, Precision::kBfloat16), 1, 2, 8),
            Bytes(*ExpandNetwork(spec), 1, 2, 8) + 4 * 4 * 256 * (64 + 64));
}

// The stem, which is direct: its operands are widened, and a share of several calls has a sum
// beside.
TEST(HostMemory, HasWhatDirectConvolutionsWidenInBfloat16) {
  const Network network = SmallAmoebanet(Precision::kBfloat16);
  const int64_t weight = 4 * 9 * 3 * 16, operands = 4 * 32 * 32 * (3 + 16);
  const int64_t room = Columns(128, 9 * 3);
  EXPECT_EQ(Bytes(network, 0, 1, 5, kBelowAvx512), 5 * weight + room + 5 * operands + weight);
  EXPECT_EQ(Bytes(network, 0, 1, 4096, kBelowAvx512),
            8 * weight + room + (int64_t{16} << 20) + weight);
}

TEST(HostMemory, WhileProfilingThereAreRoomsFromWhatTheLargestLayerLeaves) {
  const Network network =
      *ExpandNetwork(ResnetSpec{.image = {16, 16, 3}, .classes = 10, .depth = 8, .width = 64});
  JobSpec spec;
  spec.training.batch_size = 8;
  spec.training.micro_batches = 2;
  EXPECT_EQ(SpareOfProfile(spec, network, 1 << 20, {}).rooms, 0);
  const int64_t room = Bytes(network, 1, 2, 4);
  EXPECT_GT(SpareOfProfile(spec, network, int64_t{1} << 30, {}).rooms, 8 * room);
  EXPECT_EQ(SpareOfProfile(spec, network, 0, {}).rooms, std::numeric_limits<int64_t>::max());
  EXPECT_TRUE(SpareOfProfile(spec, network, 0, {}).packed_weights) << "as in training";
  EXPECT_TRUE(SpareOfProfile(spec, network, int64_t{1} << 30, {}).packed_weights);
  EXPECT_FALSE(SpareOfProfile(spec, network, 1 << 20, {}).packed_weights);
}

TEST(HostMemory, HasAPackingOfEachWeightForwardAndOneBackward) {
  // The stem, whose input's gradient nobody wants, and a block of two convolutions, 3x3 from 32
  // channels to 32.
  const int64_t stem = 4 * 9 * 3 * 32, weight = 4 * 9 * 32 * 32;
  EXPECT_EQ(PackedWeightBytes(ResnetOfWidth(32), 0, 2), stem + 2 * 2 * weight);
  // 24 channels are packed as 32 are.
  EXPECT_EQ(PackedWeightBytes(ResnetOfWidth(24), 1, 2), 2 * 2 * weight);
}

TEST(HostMemory, HasOnePackingOfAWeightThatIsFrozenWithAllInFrontOfIt) {
  const Network network = *Freeze(ResnetOfWidth(32), {"model/0000/*", "model/0001/*"}, "freeze");
  const int64_t weight = 4 * 9 * 32 * 32;
  EXPECT_EQ(PackedWeightBytes(network, 1, 2), 2 * weight);
}

// Symptom: a network was planned to fit, and ran out of memory for want of some KiB in its widest
// layers.
TEST(HostMemory, IsAPartOfThePlanOfAStageOnAProcessor) {
  const Network network = SmallAmoebanet();
  const int layers = static_cast<int>(network.layers.size());
  JobSpec spec;
  spec.name = "a";
  spec.data = CifarData{.folder = "pictures"};
  spec.training.steps = 1;
  spec.training.batch_size = 8;
  spec.training.micro_batches = 2;
  const auto plan = MakePlan(spec, network, 1, {}, {});
  ASSERT_TRUE(plan.ok()) << plan.status();
  const StageMemory of_layers =
      ForecastStageMemory(network, plan->schedule.programs, 0,
                          {.last_layer = layers, .batch_size = 8, .micro_batches = 2});
  const KernelWorkspace workspace = HostWorkspace(network, 0, layers, 4, {});
  EXPECT_EQ(plan->stages[0].memory.activations, of_layers.activations + workspace.room +
                                                    workspace.shared +
                                                    SmallTensorBytes(network, 0, layers, 2, {}) +
                                                    PackedWeightBytes(network, 0, layers));
}

// What a step can do without refuses no network, and makes none smaller.
TEST(HostMemory, PackedWeightsAreKeptWhereAStageHasRoomBesideTheRest) {
  const Network network = SmallAmoebanet();
  const int layers = static_cast<int>(network.layers.size());
  JobSpec spec;
  spec.training.batch_size = 8;
  spec.training.micro_batches = 2;
  const Schedule schedule = MakeSchedule({.kind = "gpipe", .stages = 1, .micro_batches = 2});
  const auto of = [&](int64_t limit) {
    return ForecastOnHost(spec, network, schedule.programs, {},
                          {.last_layer = layers, .limit = limit});
  };
  const int64_t packed = PackedWeightBytes(network, 0, layers);
  const HostForecast unlimited = of(0);
  EXPECT_TRUE(unlimited.spare.packed_weights);
  const int64_t needed = unlimited.memory.total() - packed;
  const int64_t room = needed + needed / 20 + packed;
  EXPECT_TRUE(of(room).spare.packed_weights);
  EXPECT_EQ(of(room).memory.total(), needed + packed);
  EXPECT_EQ(of(room).spare.rooms, 0);
  EXPECT_EQ(of(room + 7).spare.rooms, 7) << "for rooms of further threads";
  EXPECT_FALSE(of(room - 1).spare.packed_weights);
  EXPECT_EQ(of(room - 1).memory.total(), needed);
}

}  // namespace
}  // namespace stagecoach
