#include "plan/job/optimizer_slots.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "operations/catalogue.h"
#include "plan/optimizers/adafactor.h"
#include "plan/optimizers/adamw.h"
#include "plan/optimizers/lamb.h"
#include "plan/optimizers/rmsprop.h"
#include "plan/optimizers/sgd.h"

namespace stagecoach {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> SlotsOf(const std::vector<OptimizerState>& states) {
  std::vector<std::string> slots;
  for (const OptimizerState& state : states) {
    EXPECT_EQ(state.shape, Shape({2, 3})) << state.slot;
    slots.push_back(state.slot);
  }
  return slots;
}
std::vector<std::string> SlotsOf(const OptimizerSpec& optimizer) {
  return SlotsOf(OptimizerStates(optimizer, {2, 3}));
}

TEST(OptimizerSlots, AreWhatEachKindKeeps) {
  EXPECT_THAT(SlotsOf(AdamWSpec{}), ElementsAre("m", "v"));
  EXPECT_THAT(SlotsOf(SgdSpec{.momentum = 0.9}), ElementsAre("velocity"));
  EXPECT_THAT(SlotsOf(SgdSpec{}), IsEmpty());
  EXPECT_THAT(SlotsOf(LambSpec{}), ElementsAre("m", "v"));
  EXPECT_THAT(SlotsOf(RmsPropSpec{}), ElementsAre("square", "velocity_with_rate"));
  EXPECT_THAT(SlotsOf(RmsPropSpec{.form = RmsPropSpec::Form::kPyTorch}),
              ElementsAre("square", "velocity"))
      << "another velocity: a resume must not take one for the other";
  EXPECT_THAT(SlotsOf(RmsPropSpec{.momentum = 0}), ElementsAre("square"));
}

TEST(OptimizerSlots, AreThoseOfTheAverageToo) {
  TrainingSpec training;
  EXPECT_THAT(SlotsOf(TrainingStates(training, {2, 3})), ElementsAre("m", "v"));
  training.average.decay = 0.99;
  EXPECT_THAT(SlotsOf(TrainingStates(training, {2, 3})), ElementsAre("average", "m", "v"));
}

TEST(OptimizerSlots, HaveTheElementsThatAForecastCounts) {
  EXPECT_EQ(OptimizerElements(AdamWSpec{}, {2, 3}), 12);
  EXPECT_EQ(OptimizerElements(SgdSpec{}, {2, 3}), 0);
  EXPECT_EQ(OptimizerElements(AdafactorSpec{}, {20, 30}), 50);
  EXPECT_EQ(OptimizerElements(AdafactorSpec{.beta1 = 0.9}, {20, 30}), 650);
  EXPECT_EQ(OptimizerElements(AdafactorSpec{}, {30}), 30);
}

TEST(OptimizerSlots, TheNameOfATensorSaysWhichSlotItIs) {
  const std::string name = SlotTensorName("m", "model/0003/mlp.up.weight");
  EXPECT_EQ(name, "opt/m/0003/mlp.up.weight");
  EXPECT_EQ(SlotOfTensor(name), "m");
  EXPECT_EQ(SlotOfTensor("model/0003/mlp.up.weight"), "");
  EXPECT_EQ(SlotOfTensor("option"), "");
}

// What a kind keeps is what its update takes, in this order.
TEST(OptimizerKinds, KeepTheStatesThatTheirUpdatesTake) {
  for (const OptimizerKind* kind : OptimizerKinds().all()) {
    KindSpec spec;
    spec.kind = kind->name();
    spec.attributes = kind->Defaults();
    for (const Shape& shape : {Shape{}, Shape{5}, Shape{4, 3}, Shape{2, 3, 4}}) {
      for (const bool decays : {false, true}) {
        const Call call = kind->Update(spec, decays);
        std::vector<ValueType> adds(2, WeightType(Element::kFloat32, shape));
        for (const OptimizerState& state : kind->States(spec, shape)) {
          adds.push_back(WeightType(Element::kFloat32, state.shape));
        }
        const auto types = OperationNamed(call.operation).Types(call.attributes, {}, adds);
        EXPECT_TRUE(types.ok()) << call.operation << shape.ToString() << types.status();
      }
    }
  }
}

}  // namespace
}  // namespace stagecoach
