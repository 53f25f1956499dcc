#include "network/zoo/amoebanet/amoebanet_auxiliary.h"

#include <algorithm>

#include "base/errors/status.h"
#include "network/layers/flatten.h"
#include "network/layers/linear.h"
#include "network/layers/pools.h"

namespace stagecoach {
namespace {

constexpr int64_t kPool = 5, kPoolStride = 3;  // a smaller image is one window
constexpr double kFirstChannels = 128, kSecondChannels = 768;

}  // namespace

absl::StatusOr<ValueId> WriteAuxiliaryHead(const AuxiliaryHead& head, ValueId x,
                                           LayerPieces& layer) {
  const auto scaled = [&head](double channels) {
    return static_cast<int64_t>(channels * head.scale);
  };
  ValueId y = layer.Relu(x);
  const Shape image = layer.type(y).shape;
  const AveragePoolSpec pool{.kernel = {std::min(kPool, image[0]), std::min(kPool, image[1])},
                             .stride = {kPoolStride}};
  ASSIGN_OR_RETURN(y, layer.Add(pool, "auxiliary.average_pool", y));
  ASSIGN_OR_RETURN(y,
                   layer.AddConvolution(Square(scaled(kFirstChannels), 1), "auxiliary.first.", y));
  y = layer.Relu(y);
  const Shape left = layer.type(y).shape;
  const ConvolutionSpec over_all{.out = scaled(kSecondChannels), .kernel = {left[0], left[1]}};
  ASSIGN_OR_RETURN(y, layer.AddConvolution(over_all, "auxiliary.second.", y));
  ASSIGN_OR_RETURN(y, layer.Add(FlattenSpec{}, "auxiliary.flatten", layer.Relu(y)));
  return layer.Add(LinearSpec{.out = head.classes}, "auxiliary.linear", y);
}

}  // namespace stagecoach
