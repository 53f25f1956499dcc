// Names of a network's arrays in other programs, and how they lay them out: for weights that come from there or go
// there. A table is a pure function of the network.
// Threads: any.
// Errors:  INVALID_ARGUMENT: the network has no such names, and which has; NOT_FOUND: no table of that name.
#ifndef STAGECOACH_NETWORK_WEIGHT_NAMES_H_
#define STAGECOACH_NETWORK_WEIGHT_NAMES_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/shape.h"
#include "network/network.h"

namespace stagecoach {

// How the other program lays an array out.
enum class WeightLayout {
  kSame,
  kChannelsFirst,  // [out, in, height, width], where ours is [out, height, width, in]
};

struct WeightName {
  std::string ours;   // "model/0001/first.convolution.weight"
  std::string other;  // "layer1.0.conv1.weight"
  WeightLayout layout = WeightLayout::kSame;
  Shape shape;  // ours
  Shape OtherShape() const;
};

// Of every parameter that a network owns and every state, in the order of its layers. `table`: "stagecoach", where all
// names are our own, or "torchvision", of a resnet with form: imagenet and batch norm.
absl::StatusOr<std::vector<WeightName>> WeightNames(const Network& network, std::string_view table);

// Numbers of an array in their order here from that of the other program, and back. As many in both.
void FromOtherLayout(const WeightName& name, std::span<const float> other, std::span<float> ours);
void ToOtherLayout(const WeightName& name, std::span<const float> ours, std::span<float> other);

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_WEIGHT_NAMES_H_
