// Lists of the blocks of a Qwen3, which has all that a Llama has, as golden texts.
#include <string>
#include <vector>

#include "base/golden_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "network/cost.h"
#include "network/lists.h"
#include "operations/attention.h"
#include "operations/head_norm.h"
#include "operations/linear.h"
#include "operations/rms_norm.h"
#include "operations/rotary.h"

namespace stagecoach {
namespace {

constexpr int64_t kContext = 8, kWidth = 16, kHeads = 4, kKeyHeads = 2, kHeadWidth = 6,
                  kHidden = 40;

class Block {
 public:
  Block() : x_(writer_.Input(ActivationType({kContext, kWidth}))) {}
  ValueId x() const { return x_; }
  ValueId RmsNorm(ValueId x) {
    const ValueId weight = writer_.Parameter(Element::kFloat32, {kWidth});
    return Call("rms_norm", ToAttributes(RmsNormAttributes{}), {x, weight});
  }
  ValueId Linear(ValueId x, int64_t out) {
    const ValueId weight =
        writer_.Parameter(Element::kActivation, {out, writer_.type(x).shape.back()});
    return Call("linear", ToAttributes(LinearAttributes{}), {x, weight});
  }
  ValueId Call(std::string_view operation, Attributes attributes, std::vector<ValueId> inputs) {
    return writer_.Emit(operation, std::move(attributes), std::move(inputs))[0];
  }
  ValueId HeadNorm(ValueId qkv) {
    const ValueId queries = writer_.Parameter(Element::kFloat32, {kHeadWidth});
    const ValueId keys = writer_.Parameter(Element::kFloat32, {kHeadWidth});
    return Call("head_norm", ToAttributes(HeadNormAttributes{kHeads, kKeyHeads}),
                {qkv, queries, keys});
  }
  LayerLists OntoTrunk(ValueId branch) {
    CHECK(writer_.AddToLast(branch, x_));
    const auto graph = writer_.Finish({branch});
    CHECK_OK(graph.status());
    return Differentiate(*graph);
  }

 private:
  LayerWriter writer_;
  const ValueId x_;
};

LayerLists Attend() {
  Block block;
  const ValueId qkv = block.Linear(block.RmsNorm(block.x()), (kHeads + 2 * kKeyHeads) * kHeadWidth);
  const ValueId turned = block.Call(
      "rotary", ToAttributes(RotaryAttributes{kHeads, kKeyHeads, 1e6}), {block.HeadNorm(qkv)});
  const ValueId out = block.Call(
      "attention", ToAttributes(AttentionAttributes{.heads = kHeads, .key_heads = kKeyHeads}),
      {turned});
  return block.OntoTrunk(block.Linear(out, kWidth));
}

LayerLists FeedForward() {
  Block block;
  const ValueId normed = block.RmsNorm(block.x());
  const ValueId gate = block.Linear(normed, kHidden), up = block.Linear(normed, kHidden);
  return block.OntoTrunk(block.Linear(block.Call("swiglu", {}, {gate, up}), kWidth));
}

// The rotation happens in the memory of what it turns, forward and backward, and the norm takes the trunk's sum.
TEST(Lists, OfAQwenBlock) {
  ExpectGolden("lists/qwen_attention.txt", FormatLists(Attend()));
  ExpectGolden("lists/qwen_feed_forward.txt", FormatLists(FeedForward()));
}

}  // namespace
}  // namespace stagecoach
