// What a stage on a processor takes beside its layers.
#include "plan/costs/host_memory.h"

#include <algorithm>
#include <limits>

#include "gtest/gtest.h"
#include "network/network_kinds.h"
#include "network/passes/freeze.h"
#include "network/zoo/amoebanet/amoebanet.h"
#include "network/zoo/gpt.h"
#include "network/zoo/resnet.h"
#include "plan/costs/small_tensors.h"
#include "plan/data/cifar.h"
#include "plan/plan.h"

namespace stagecoach {
namespace {

Network SmallAmoebanet() {
  AmoebanetDSpec spec;
  spec.image = {32, 32, 3};
  spec.classes = 10;
  spec.layers = 3;
  spec.filters = 16;
  spec.stem = AmoebanetStem::kSmall;
  return *ExpandNetwork(spec);
}

TEST(HostMemory, WhileProfilingThereAreRoomsFromWhatTheLargestLayerLeaves) {
  const Network network =
      *ExpandNetwork(ResnetSpec{.image = {16, 16, 3}, .classes = 10, .depth = 8, .width = 64});
  JobSpec spec;
  spec.training.batch_size = 8;
  spec.training.micro_batches = 2;
  EXPECT_EQ(SpareOfProfile(spec, network, 1 << 20, {}).rooms, 0);
  const KernelWorkspace block = HostWorkspace(network, 1, 2, 4, {});
  EXPECT_GT(SpareOfProfile(spec, network, int64_t{1} << 30, {}).rooms,
            8 * (block.room + block.shared));
  EXPECT_EQ(SpareOfProfile(spec, network, 0, {}).rooms, std::numeric_limits<int64_t>::max());
  EXPECT_TRUE(SpareOfProfile(spec, network, 0, {}).packed_weights) << "as in training";
  EXPECT_TRUE(SpareOfProfile(spec, network, int64_t{1} << 30, {}).packed_weights);
  EXPECT_FALSE(SpareOfProfile(spec, network, 1 << 20, {}).packed_weights);
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
                          {.cells = {{0, layers}}, .batch_size = 8, .micro_batches = 2});
  const KernelWorkspace workspace = HostWorkspace(network, 0, layers, 4, {});
  EXPECT_EQ(plan->stages[0].memory.activations,
            of_layers.activations + workspace.room + workspace.shared +
                SmallTensorBytes(network, 0, layers, 2, {}) + workspace.kept);
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
                          {.cells = {{0, layers}}, .limit = limit});
  };
  const int64_t packed = HostWorkspace(network, 0, layers, 4, {}).kept;
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

// A job that writes reads the same weights in every step.
TEST(HostMemory, LinearMapsStayPackedWhereAJobWritesManyRowsAndHasRoom) {
  const Network network = *ExpandNetwork(
      GptSpec{.layers = 2, .width = 64, .heads = 2, .context = 16, .vocabulary = 100});
  const int layers = static_cast<int>(network.layers.size());
  const Schedule schedule = MakeSchedule({.kind = "gpipe", .stages = 1, .micro_batches = 1});
  JobSpec spec;
  spec.training.micro_batches = 1;
  const auto of = [&](int64_t batch_size, int64_t limit) {
    spec.training.batch_size = batch_size;
    return ForecastOnHost(spec, network, schedule.programs, {},
                          {.cells = {{0, layers}}, .limit = limit});
  };
  const int64_t packed = HostWorkspace(network, 0, layers, 64, {}).kept_constant;
  ASSERT_GE(packed, 4 * 2 * (3 + 1 + 4 + 4) * 64 * 64);
  const HostForecast training = of(64, 0);
  EXPECT_FALSE(training.spare.packed_products);
  const int64_t needed = training.memory.total(), room = needed + needed / 20 + packed;

  spec.write = WriteSpec{.lines = {"Once"}, .generate = GenerateSpec{}};
  EXPECT_TRUE(of(64, 0).spare.packed_products);
  EXPECT_EQ(of(64, 0).memory.total(), needed + packed);
  EXPECT_TRUE(of(64, room).spare.packed_products);
  EXPECT_EQ(of(64, room + 7).spare.rooms, 7);
  EXPECT_FALSE(of(64, room - 1).spare.packed_products);
  EXPECT_EQ(of(64, room - 1).memory.total(), needed);
  EXPECT_FALSE(of(63, 0).spare.packed_products) << "a product of few rows packs nothing";
  spec.write = WriteSpec{.lines = {"Once"}, .translate = TranslateSpec{.beam = 4}};
  EXPECT_TRUE(of(16, 0).spare.packed_products);
  EXPECT_FALSE(of(15, 0).spare.packed_products);
}

// The stem, whose input's gradient nobody wants, and a block of two convolutions, 3x3 from 32
// channels to 32.
TEST(HostMemory, HasAPackingOfEachWeightForwardAndOneBackwardUnlessItIsFrozen) {
  const Network network =
      *ExpandNetwork(ResnetSpec{.image = {8, 8, 3}, .classes = 10, .depth = 8, .width = 32});
  const int64_t stem = 4 * 9 * 3 * 32, weight = 4 * 9 * 32 * 32;
  EXPECT_EQ(HostWorkspace(network, 0, 2, 1, {}).kept, stem + 2 * 2 * weight);
  const Network frozen = *Freeze(network, {"model/0000/*", "model/0001/*"}, "freeze");
  EXPECT_EQ(HostWorkspace(frozen, 1, 2, 1, {}).kept, 2 * weight);
}

// The widest weight has the largest shares, the widest rows the largest room, and the back end
// holds both until the cell ends.
TEST(HostMemory, HasTheLargestRoomAndTheLargestSharedPieceOfDifferentLayers) {
  const Network network = SmallAmoebanet();
  const int layers = static_cast<int>(network.layers.size());
  KernelWorkspace most;
  for (int layer = 0; layer < layers; ++layer) {
    const KernelWorkspace one = HostWorkspace(network, layer, layer + 1, 4, {});
    most.room = std::max(most.room, one.room);
    most.shared = std::max(most.shared, one.shared);
    most.kept += one.kept;
  }
  const KernelWorkspace all = HostWorkspace(network, 0, layers, 4, {});
  EXPECT_EQ(all.room, most.room);
  EXPECT_EQ(all.shared, most.shared);
  EXPECT_EQ(all.kept, most.kept);
}

// Two samples are cut into eight shares of the weight's gradient, three into six.
TEST(HostMemory, CountsMicroBatchesWithASampleLess) {
  const Network network = SmallAmoebanet();
  JobSpec spec;
  spec.training.micro_batches = 2;
  const Schedule schedule = MakeSchedule({.kind = "gpipe", .stages = 1, .micro_batches = 2});
  const auto workspace = [&](int64_t batch_size) {
    spec.training.batch_size = batch_size;
    const StageMemory tensors =
        ForecastStageMemory(network, schedule.programs, 0,
                            {.cells = {{0, 1}}, .batch_size = batch_size, .micro_batches = 2});
    return ForecastOnHost(spec, network, schedule.programs, {},
                          {.cells = {{0, 1}}, .limit = 1, .host = {.avx512 = false}})
               .memory.activations -
           tensors.activations;
  };
  EXPECT_EQ(workspace(5) - workspace(6), 2 * 4 * 9 * 3 * 16) << "3 and 2 samples, and 3 and 3";
  EXPECT_EQ(workspace(5), workspace(4)) << "2 and 2";
}

}  // namespace
}  // namespace stagecoach
