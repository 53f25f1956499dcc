// Lists of a ResNet's block and of layers on images as golden texts.
#include <string>
#include <vector>

#include "base/golden_testing.h"
#include "gtest/gtest.h"
#include "network/layer_builder.h"
#include "network/layers/convolution.h"
#include "network/layers/flatten.h"
#include "network/layers/linear.h"
#include "network/layers/pools.h"
#include "network/lists/lists.h"
#include "operations/images/convolution.h"
#include "operations/norms/batch_norm.h"

namespace stagecoach {
namespace {

class ImageBlock {
 public:
  ValueId Input() { return writer_.Input(ActivationType({8, 6, 4})); }
  ValueId ConvolveAndNorm(ValueId x) {
    const ConvolutionAttributes attributes{.steps = {.padding = {1, 1}}};
    const ValueId weight = writer_.Parameter(Element::kActivation, {4, 3, 3, 4});
    const ValueId y = Only("convolution", ToAttributes(attributes), {x, weight});
    const ValueId scale = writer_.Parameter(Element::kFloat32, {4});
    const ValueId shift = writer_.Parameter(Element::kFloat32, {4});
    const ValueId mean = writer_.State({4}), variance = writer_.State({4});
    return Only("batch_norm", ToAttributes(BatchNormAttributes{.momentum = 0.1}),
                {y, scale, shift, mean, variance});
  }
  ValueId Only(const char* operation, const Attributes& attributes, std::vector<ValueId> inputs) {
    return writer_.Emit(operation, attributes, std::move(inputs))[0];
  }
  LayerLists Lists(ValueId output) {
    const auto graph = writer_.Finish({output});
    CHECK_OK(graph.status());
    return Differentiate(*graph);
  }

 private:
  LayerWriter writer_;
};

// The ReLUs are made in place. The sums of a batch norm are made once, for its input's gradient,
// and read by the weight part, which also folds the micro-batch's moments into the accumulators of
// the mini-batch's: the commit makes them part of the averages that the evaluation reads.
TEST(Lists, OfAResNetBlock) {
  ImageBlock block;
  const ValueId x = block.Input();
  const ValueId first = block.Only("relu", {}, {block.ConvolveAndNorm(x)});
  const ValueId branch = block.ConvolveAndNorm(first);
  const ValueId y = block.Only("relu", {}, {block.Only("add", {}, {x, branch})});
  ExpectGolden("lists/resnet_block.txt", FormatLists(block.Lists(y)));
}

// What is flattened is made in place; a pool keeps which numbers were the largest, and not its
// input.
TEST(Lists, OfLayersOnImages) {
  LayerBuilder builder(1, kInitStddev, {.images = true});
  ValueId x = builder.writer().Input(ActivationType({8, 6, 3}));
  for (const LayerSpec& layer : std::vector<LayerSpec>{
           ConvolutionSpec{.out = 4, .kernel = {3}, .padding = {1}}, MaxPoolSpec{.kernel = {2}},
           AveragePoolSpec{.kernel = {2, 1}}, FlattenSpec{}, LinearSpec{.out = 5}}) {
    const auto y = BuildLayer(layer, x, {.path = "layer", .prefix = layer.kind + "."}, builder);
    ASSERT_TRUE(y.ok()) << y.status();
    x = *y;
  }
  ExpectGolden("lists/image_layers.txt", FormatLists(Differentiate(builder.Finish(x)->graph)));
}

}  // namespace
}  // namespace stagecoach
