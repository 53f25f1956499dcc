#include "network/zoo/resnet.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "base/field_check.h"
#include "base/status.h"
#include "network/layer_kinds.h"
#include "network/layers/batch_norm.h"
#include "network/layers/convolution.h"
#include "network/layers/global_pool.h"
#include "network/layers/linear.h"
#include "network/layers/relu.h"
#include "network/network_builder.h"
#include "network/network_kind.h"
#include "network/zoo/layer_chain.h"

namespace stagecoach {
namespace {

// What makes one layer of the network: pieces behind each other, whose parameters have the piece's name before theirs.
class LayerWriting {
 public:
  LayerWriting(std::string path, LayerBuilder& builder)
      : path_(std::move(path)), builder_(builder) {}

  absl::StatusOr<ValueId> Add(const LayerSpec& piece, const std::string& name, ValueId x) {
    return BuildLayer(piece, x, {.path = path_, .prefix = name + "."}, builder_);
  }
  // A convolution that keeps the extents but for its stride, and batch_norm; "convolution2", "batch_norm2".
  absl::StatusOr<ValueId> AddConvolution(int64_t out, int64_t kernel, int64_t stride,
                                         const std::string& name, ValueId x) {
    const ConvolutionSpec convolution{
        .out = out, .kernel = {kernel}, .stride = {stride}, .padding = {kernel / 2}, .bias = false};
    ASSIGN_OR_RETURN(x, Add(convolution, name + "convolution", x));
    return Add(BatchNormSpec{}, name + "batch_norm", x);
  }

 private:
  const std::string path_;
  LayerBuilder& builder_;
};

struct Block {
  int64_t out = 0, stride = 1;
};

absl::StatusOr<ValueId> WriteBlock(const Block& block, ValueId x, LayerWriting& layer,
                                   LayerWriter& writer) {
  ASSIGN_OR_RETURN(ValueId y, layer.AddConvolution(block.out, 3, block.stride, "first.", x));
  ASSIGN_OR_RETURN(y, layer.Add(ReluSpec{}, "relu", y));
  ASSIGN_OR_RETURN(y, layer.AddConvolution(block.out, 3, 1, "second.", y));
  ValueId shortcut = x;
  if (writer.type(x) != writer.type(y)) {
    ASSIGN_OR_RETURN(shortcut, layer.AddConvolution(block.out, 1, block.stride, "shortcut.", x));
  }
  const ValueId sum = writer.Emit("add", {}, {shortcut, y})[0];
  return writer.Emit("relu", {}, {sum})[0];
}

absl::StatusOr<ValueId> WriteStem(int64_t out, ValueId x, LayerWriting& layer) {
  ASSIGN_OR_RETURN(x, layer.AddConvolution(out, 3, 1, "", x));
  return layer.Add(ReluSpec{}, "relu", x);
}

absl::StatusOr<ValueId> WriteHead(int64_t classes, ValueId x, LayerWriting& layer) {
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
    NetworkBuilder builder(kInitStddev, {.images = true});
    WireId x = builder.Input("images", ActivationType(Shape(spec.image)), 0);
    const WireId labels =
        builder.Input("labels", {Element::kIds, Leading::kSamples, {}}, spec.classes);
    // `write` of ValueId, LayerWriting and LayerWriter.
    const auto add = [&](const std::string& label, const std::string& function,
                         const auto& write) -> absl::Status {
      const auto layer = [&](const std::vector<ValueId>& inputs,
                             LayerBuilder& layer_builder) -> absl::StatusOr<std::vector<ValueId>> {
        LayerWriting writing(path, layer_builder);
        ASSIGN_OR_RETURN(const ValueId y, write(inputs[0], writing, layer_builder.writer()));
        return std::vector<ValueId>{y};
      };
      ASSIGN_OR_RETURN(const std::vector<WireId> outputs,
                       builder.Add({label, function, path}, {x}, layer));
      x = outputs[0];
      return absl::OkStatus();
    };
    RETURN_IF_ERROR(add("stem", "resnet_stem", [&](ValueId in, LayerWriting& layer, LayerWriter&) {
      return WriteStem(spec.width, in, layer);
    }));
    const int64_t blocks = (spec.depth - 2) / 6;
    for (int64_t stage = 0; stage < 3; ++stage) {
      for (int64_t i = 0; i < blocks; ++i) {
        const Block block{.out = spec.width << stage, .stride = stage > 0 && i == 0 ? 2 : 1};
        RETURN_IF_ERROR(add("basic_block",
                            absl::StrCat("basic_block:", block.out, ":", block.stride),
                            [&](ValueId in, LayerWriting& layer, LayerWriter& writer) {
                              return WriteBlock(block, in, layer, writer);
                            }));
      }
    }
    RETURN_IF_ERROR(add("head", "resnet_head", [&](ValueId in, LayerWriting& layer, LayerWriter&) {
      return WriteHead(spec.classes, in, layer);
    }));
    return builder.Finish({.output = x, .targets = labels}, path);
  }
};

}  // namespace

const NetworkKind* ResnetNetwork() {
  static const Resnet kind;
  return &kind;
}

}  // namespace stagecoach
