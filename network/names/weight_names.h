// Names and layouts of a network's arrays in other programs, for weights that come from there or go
// there. A table is a pure function of the network.
// Threads: any.
// Errors:  INVALID_ARGUMENT: the network has no such names, and which networks have; NOT_FOUND: no
//          table of that name.
#ifndef STAGECOACH_NETWORK_NAMES_WEIGHT_NAMES_H_
#define STAGECOACH_NETWORK_NAMES_WEIGHT_NAMES_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/numbers/shape.h"
#include "network/network.h"

namespace stagecoach {

// How the other program lays an array out.
enum class WeightLayout {
  kSame,
  kChannelsFirst,  // [out, in, height, width] for our [out, height, width, in]
  kOnesInFront,    // the same numbers, with leading extents of 1 up to three extents
};

struct WeightName {
  std::string ours;   // "model/0001/first.convolution.weight"
  std::string other;  // "layer1.0.conv1.weight"
  std::string older;  // name in earlier versions of the other program; empty: unchanged
  WeightLayout layout = WeightLayout::kSame;
  Shape shape;  // ours
  Shape OtherShape() const;
};

// Our own names, and those of PyTorch's collections of models.
inline constexpr std::string_view kOwnNames = "stagecoach", kTorchvisionNames = "torchvision",
                                  kTimmNames = "timm";

// Names of every parameter that a network owns and every state, in the order of its layers.
// `table`: one of the names above.
// Torchvision and timm have names for a resnet with form: imagenet and batch norm, which are the
// same, and for a vit.
absl::StatusOr<std::vector<WeightName>> WeightNames(const Network& network, std::string_view table);

// Copies an array from the other program's order into ours, and back. Both have the same size.
void FromOtherLayout(const WeightName& name, std::span<const float> other, std::span<float> ours);
void ToOtherLayout(const WeightName& name, std::span<const float> ours, std::span<float> other);

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_NAMES_WEIGHT_NAMES_H_
