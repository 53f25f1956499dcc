#include "network/shared_lists.h"

#include "gtest/gtest.h"

namespace stagecoach {
namespace {

// Which differ by their width.
LayerGraph Gelu(int64_t width) {
  LayerWriter writer;
  const ValueId x = writer.Input(ActivationType({width}));
  return writer.Finish(writer.Emit("gelu", {}, {x})).value();
}

NetworkLayer LayerOf(int64_t width, SharedLists* lists) {
  NetworkLayer layer;
  EXPECT_TRUE(lists->Set(Gelu(width), &layer).ok());
  EXPECT_EQ(*layer.graph, Gelu(width));
  EXPECT_EQ(layer.lists->value(layer.lists->outputs[0]).type, ActivationType({width}));
  return layer;
}

TEST(SharedLists, EqualLayersHaveOne) {
  SharedLists lists;
  const NetworkLayer first = LayerOf(3, &lists), other = LayerOf(4, &lists);
  const NetworkLayer again = LayerOf(3, &lists);
  EXPECT_EQ(again.lists, first.lists);
  EXPECT_EQ(again.graph, first.graph);
  EXPECT_NE(other.lists, first.lists);
}

TEST(SharedLists, ForgetWhatWasUsedLongestAgo) {
  SharedLists lists;
  const NetworkLayer one = LayerOf(1, &lists), two = LayerOf(2, &lists);
  for (int64_t width = 3; width <= 64; ++width) LayerOf(width, &lists);
  EXPECT_EQ(LayerOf(1, &lists).lists, one.lists) << "64 are known, and this one is used again";
  LayerOf(65, &lists);  // in the place of the second
  EXPECT_EQ(LayerOf(1, &lists).lists, one.lists);
  EXPECT_NE(LayerOf(2, &lists).lists, two.lists);
}

}  // namespace
}  // namespace stagecoach
