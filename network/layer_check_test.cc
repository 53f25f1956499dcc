// Layers that somebody else wrote: their calls fit each other, and yet they cannot be built.
#include "network/layer_check.h"

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "network/lists/lists.h"
#include "operations/attention/rotary.h"
#include "operations/catalogue.h"
#include "operations/linear.h"
#include "operations/norms/batch_norm.h"

namespace stagecoach {
namespace {

using ::testing::HasSubstr;

class ForeignLayer : public testing::Test {
 protected:
  ValueId Array(const std::string& name, Element element = Element::kFloat32,
                Shape shape = Shape{8}) {
    ParameterSpec parameter;
    parameter.name = name;
    parameter.shape = shape;
    parameter.index = static_cast<int>(layer_.parameters.size());
    layer_.parameters.push_back(parameter);
    return writer_.Parameter(element, std::move(shape));
  }
  ValueId State(const std::string& name) {
    layer_.states.push_back({name, {8}, 0});
    return writer_.State({8});
  }
  std::vector<ValueId> Call(const std::string& operation, std::vector<ValueId> inputs,
                            Attributes attributes = {}) {
    return writer_.Emit(operation, std::move(attributes), std::move(inputs));
  }
  BuiltLayer Finish(std::vector<ValueId> outputs) {
    auto graph = LayerWriter(writer_).Finish(std::move(outputs));
    CHECK_OK(graph.status());
    layer_.graph = *std::move(graph);
    return layer_;
  }
  std::string Refusal(std::vector<ValueId> outputs) {
    const BuiltLayer layer = Finish(std::move(outputs));
    absl::Status status = CheckLayer(layer);
    if (status.ok()) status = TryDifferentiate(layer.graph).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  }

  const Attributes running_ = ToAttributes(BatchNormAttributes{.momentum = 0.1});
  LayerWriter writer_;
  BuiltLayer layer_;
  const ValueId x_ = writer_.Input(ActivationType({4, 8}));
};

TEST_F(ForeignLayer, GoodOnesAreTaken) {
  const ValueId weight = Array("weight", Element::kActivation, {8, 8});
  const ValueId y = Call("linear", {x_, weight}, ToAttributes(LinearAttributes{}))[0];
  EXPECT_TRUE(CheckLayer(Finish(Call("gelu", {y}))).ok());
}

TEST_F(ForeignLayer, GiveSomethingAndEachOnce) {
  EXPECT_THAT(Refusal({}), HasSubstr("gives nothing"));
  EXPECT_THAT(Refusal({x_, x_}), HasSubstr("gives value 0 twice"));
  const ValueId weight = Array("weight");
  EXPECT_THAT(Refusal({x_, weight}), HasSubstr("float32[8], which cannot go from layer to layer"));
}

TEST_F(ForeignLayer, HaveNoCallsThatNothingReads) {
  Call("gelu", {x_});
  EXPECT_THAT(Refusal({x_}), HasSubstr("gelu: nothing reads what it gives"));
}

TEST_F(ForeignLayer, HaveNamesThatAreKeysOfACheckpoint) {
  Array("weight");
  Array("weight");
  EXPECT_THAT(Refusal({x_}), HasSubstr("two arrays weight"));
  layer_.parameters[1].name = "a b";
  EXPECT_THAT(Refusal({x_}), HasSubstr("must be 1 to 512 letters"));
}

// Nobody asks for the gradient of a layer in front of all that is trained, so its calls could be
// any.
TEST_F(ForeignLayer, HaveNoOperationOfABackwardEvenWhereNothingIsTrained) {
  LayerWriter writer;
  const ValueId dy = writer.Input(ActivationType({4, 8}), false);
  const ValueId x = writer.Input(ActivationType({4, 8}), false);
  const auto outputs = writer.Emit("gelu_gradient", {}, {dy, x});
  layer_.graph = writer.Finish(outputs).value();
  EXPECT_TRUE(TryDifferentiate(layer_.graph).ok());
  EXPECT_EQ(CheckLayer(layer_).message(), "gelu_gradient: has no gradient");
}

TEST_F(ForeignLayer, TurnByPositionsWhereNoGradientIsWanted) {
  const Attributes positions = ToAttributes(RotaryAttributes{.heads = 1, .positions = 9});
  for (const bool wanted : {true, false}) {
    LayerWriter writer;
    const ValueId x = writer.Input(ActivationType({4, 6}), wanted);
    const ValueId at = writer.Input({Element::kIds, Leading::kSamples, {4}}, false);
    const LayerGraph graph = writer.Finish(writer.Emit("rotary", positions, {x, at})).value();
    EXPECT_EQ(TryDifferentiate(graph).status().message(),
              wanted ? "rotary: with positions has no gradient" : "");
  }
}

TEST_F(ForeignLayer, GiveTheirGradientsToParameters) {
  const std::vector<ValueId> normed = Call("rms_norm", {x_, Array("weight")});
  // What the first norm gives of each row has as many numbers as the second has channels.
  ASSERT_EQ(writer_.type(normed[1]).shape, Shape{4});
  EXPECT_THAT(Refusal({normed[0], normed[1]}),
              HasSubstr("rms_norm: has no gradient through output 1"));
}

TEST_F(ForeignLayer, ChangeStatesAndNothingElse) {
  const std::vector<ValueId> y =
      Call("batch_norm", {x_, Array("weight"), Array("bias"), State("mean"), Array("variance")},
           running_);
  EXPECT_THAT(Refusal({y[0]}), HasSubstr("batch_norm: would change value 4, which is no state"));
}

TEST_F(ForeignLayer, GiveInAnEvaluationWhatTheyGiveInTraining) {
  const auto frozen = [this] { return writer_.Parameter(Element::kFloat32, {8}, false); };
  const ValueId x = writer_.Input(ActivationType({4, 8}), false);
  const ValueId weight = frozen(), bias = frozen();
  const std::vector<ValueId> y =
      Call("batch_norm", {x, weight, bias, writer_.State({8}), writer_.State({8})}, running_);
  // The mean of the micro-batch: an evaluation has that of the states.
  EXPECT_THAT(std::string(TryDifferentiate(Finish({y[0], y[1]}).graph).status().message()),
              HasSubstr("which is not there in an evaluation"));
}

}  // namespace
}  // namespace stagecoach
