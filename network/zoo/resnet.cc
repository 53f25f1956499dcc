#include "network/zoo/resnet.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/field_check.h"
#include "base/status.h"
#include "network/layers/global_pool.h"
#include "network/layers/linear.h"
#include "network/network_kind.h"
#include "network/zoo/image_network_writer.h"

namespace stagecoach {
namespace {

struct Block {
  int64_t out = 0, stride = 1;
};

absl::StatusOr<ValueId> WriteBlock(const Block& block, ValueId x, LayerPieces& layer) {
  ASSIGN_OR_RETURN(ValueId y,
                   layer.AddConvolution(Square(block.out, 3, block.stride), "first.", x));
  ASSIGN_OR_RETURN(y, layer.AddConvolution(Square(block.out, 3), "second.", layer.Relu(y)));
  ValueId shortcut = x;
  if (layer.type(x) != layer.type(y)) {
    ASSIGN_OR_RETURN(shortcut,
                     layer.AddConvolution(Square(block.out, 1, block.stride), "shortcut.", x));
  }
  return layer.Relu(layer.Sum(shortcut, y));
}

absl::StatusOr<ValueId> WriteStem(int64_t out, ValueId x, LayerPieces& layer) {
  ASSIGN_OR_RETURN(x, layer.AddConvolution(Square(out, 3), "", x));
  return layer.Relu(x);
}

absl::StatusOr<ValueId> WriteHead(int64_t classes, ValueId x, LayerPieces& layer) {
  ASSIGN_OR_RETURN(x, layer.Add(GlobalPoolSpec{}, "global_pool", x));
  return layer.Add(LinearSpec{.out = classes}, "linear", x);
}

class Resnet final : public NetworkKindOf<ResnetSpec> {
  absl::StatusOr<Network> Write(const ResnetSpec& spec, const std::string& path) const override {
    RETURN_IF_ERROR(CheckImageShape({spec.image, spec.classes}, path));
    if (spec.depth % 6 != 2) {
      const int64_t below = (spec.depth - 2) / 6 * 6 + 2;
      return FieldError(path + ".depth", absl::StrCat(spec.depth),
                        absl::StrCat("must be 6n + 2, as ", below, " or ", below + 6));
    }
    ImageNetworkWriter writer({spec.image, spec.classes}, BatchNormSpec{}, path);
    using Values = std::vector<ValueId>;
    const auto stem = [&spec](const Values& in, LayerPieces& layer) {
      return WriteStem(spec.width, in[0], layer);
    };
    ASSIGN_OR_RETURN(WireId x, writer.Add("stem", "resnet_stem", {writer.images()}, stem));
    const int64_t blocks = (spec.depth - 2) / 6;
    for (int64_t i = 0; i < 3 * blocks; ++i) {
      const int64_t stage = i / blocks;
      const Block block{.out = spec.width << stage, .stride = i == stage * blocks && i > 0 ? 2 : 1};
      const auto write = [&block](const Values& in, LayerPieces& layer) {
        return WriteBlock(block, in[0], layer);
      };
      const std::string function = absl::StrCat("basic_block:", block.out, ":", block.stride);
      ASSIGN_OR_RETURN(x, writer.Add("basic_block", function, {x}, write));
    }
    const auto head = [&spec](const Values& in, LayerPieces& layer) {
      return WriteHead(spec.classes, in[0], layer);
    };
    ASSIGN_OR_RETURN(x, writer.Add("head", "resnet_head", {x}, head));
    return writer.Finish(x);
  }
};

}  // namespace

const NetworkKind* ResnetNetwork() {
  static const Resnet kind;
  return &kind;
}

}  // namespace stagecoach
