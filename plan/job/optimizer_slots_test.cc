#include "plan/job/optimizer_slots.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plan/optimizers/adamw.h"
#include "plan/optimizers/lamb.h"
#include "plan/optimizers/rmsprop.h"
#include "plan/optimizers/sgd.h"

namespace stagecoach {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(OptimizerSlots, AreWhatEachKindKeeps) {
  EXPECT_THAT(OptimizerSlots(AdamWSpec{}), ElementsAre("m", "v"));
  EXPECT_THAT(OptimizerSlots(SgdSpec{.momentum = 0.9}), ElementsAre("velocity"));
  EXPECT_THAT(OptimizerSlots(SgdSpec{}), IsEmpty());
  EXPECT_THAT(OptimizerSlots(LambSpec{}), ElementsAre("m", "v"));
  EXPECT_THAT(OptimizerSlots(RmsPropSpec{}), ElementsAre("square", "velocity_with_rate"));
  EXPECT_THAT(OptimizerSlots(RmsPropSpec{.form = RmsPropSpec::Form::kPyTorch}),
              ElementsAre("square", "velocity"))
      << "another velocity: a resume must not take one for the other";
  EXPECT_THAT(OptimizerSlots(RmsPropSpec{.momentum = 0}), ElementsAre("square"));
}

TEST(OptimizerSlots, AreThoseOfTheAverageToo) {
  TrainingSpec training;
  EXPECT_THAT(TrainingSlots(training), ElementsAre("m", "v"));
  training.average.decay = 0.99;
  EXPECT_THAT(TrainingSlots(training), ElementsAre("average", "m", "v"));
}

TEST(OptimizerSlots, TheNameOfATensorSaysWhichSlotItIs) {
  const std::string name = SlotTensorName("m", "model/0003/mlp.up.weight");
  EXPECT_EQ(name, "opt/m/0003/mlp.up.weight");
  EXPECT_EQ(SlotOfTensor(name), "m");
  EXPECT_EQ(SlotOfTensor("model/0003/mlp.up.weight"), "");
  EXPECT_EQ(SlotOfTensor("option"), "");
}

}  // namespace
}  // namespace stagecoach
