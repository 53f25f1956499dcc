// For tests: compares two networks in everything.
#ifndef STAGECOACH_NETWORK_NETWORK_TESTING_H_
#define STAGECOACH_NETWORK_NETWORK_TESTING_H_

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "network/network.h"

namespace stagecoach {

inline void ExpectSameNetwork(const Network& is, const Network& expected) {
  EXPECT_EQ(is.inputs, expected.inputs);
  EXPECT_EQ(is.wires, expected.wires);
  EXPECT_EQ(is.objective, expected.objective);
  EXPECT_EQ(is.precision, expected.precision);
  ASSERT_EQ(is.layers.size(), expected.layers.size());
  for (size_t i = 0; i < is.layers.size(); ++i) {
    const NetworkLayer &layer = is.layers[i], &other = expected.layers[i];
    SCOPED_TRACE(other.label);
    EXPECT_EQ(layer.index, other.index);
    EXPECT_EQ(layer.label, other.label);
    EXPECT_EQ(layer.function, other.function);
    EXPECT_EQ(layer.inputs, other.inputs);
    EXPECT_EQ(layer.outputs, other.outputs);
    EXPECT_EQ(layer.parameters, other.parameters);
    EXPECT_EQ(layer.states, other.states);
    EXPECT_EQ(*layer.graph, *other.graph);
    EXPECT_EQ(FormatLists(*layer.lists), FormatLists(*other.lists));
  }
}

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_NETWORK_TESTING_H_
