#include "network/zoo/vit.h"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/errors/field_check.h"
#include "base/errors/status.h"
#include "network/layers/attention.h"
#include "network/layers/dropout.h"
#include "network/layers/linear.h"
#include "network/layers/mlp.h"
#include "network/layers/norms.h"
#include "network/layers/residual.h"
#include "network/network_builder.h"
#include "network/network_kind.h"
#include "network/zoo/layer_chain.h"
#include "operations/images/convolution.h"
#include "operations/images/pad.h"
#include "operations/reshape.h"

namespace stagecoach {
namespace {

constexpr double kEpsilon = 1e-6;

class Vit final : public NetworkKindOf<VitSpec> {
  absl::StatusOr<Network> Write(const VitSpec& spec, const std::string& path) const override {
    RETURN_IF_ERROR(Check(spec, path));
    NetworkBuilder builder(kInitStddev, {});
    const WireId images = builder.Input("images", ActivationType(Shape(spec.image)), 0);
    const WireId labels =
        builder.Input("labels", {Element::kIds, Leading::kSamples, {}}, spec.classes);
    const auto add = [&](const char* label, const std::string& function, WireId x, auto write) {
      return builder.Add({label, function, path}, {x},
                         [&](const std::vector<ValueId>& inputs, LayerBuilder& layer) {
                           return write(spec, inputs[0], path, layer);
                         });
    };
    ASSIGN_OR_RETURN(std::vector<WireId> x,
                     add("patch_embedding", absl::StrCat("patch_embedding:", spec.patch), images,
                         &Vit::WriteEmbedding));
    for (int64_t i = 0; i < spec.layers; ++i) {
      for (const LayerSpec& branch : BranchesOf(spec)) {
        ASSIGN_OR_RETURN(x[0], builder.Add(branch, path, x[0]));
      }
    }
    ASSIGN_OR_RETURN(x, add("head", "class_token_head", x[0], &Vit::WriteHead));
    return builder.Finish({.output = x[0], .targets = labels}, path);
  }

  static absl::Status Check(const VitSpec& spec, const std::string& path) {
    RETURN_IF_ERROR(CheckImageShape({spec.image, spec.classes}, path));
    if (spec.width % spec.heads != 0) {
      return FieldError(path + ".heads", absl::StrCat(spec.heads),
                        absl::StrCat("must divide the width ", spec.width));
    }
    if (spec.image[0] % spec.patch != 0 || spec.image[1] % spec.patch != 0) {
      return FieldError(
          path + ".patch", absl::StrCat(spec.patch),
          absl::StrCat("must divide the sides of the image, ", spec.image[0], "x", spec.image[1]));
    }
    const int64_t patches = spec.image[0] / spec.patch * (spec.image[1] / spec.patch);
    if (patches < kMaxContext) return absl::OkStatus();
    return FieldError(path + ".patch", absl::StrCat(spec.patch),
                      absl::StrCat("gives ", patches, " patches; must be below ", kMaxContext,
                                   ": take larger ones"));
  }

  // The two of a block.
  static std::vector<LayerSpec> BranchesOf(const VitSpec& spec) {
    const auto branch = [&spec](LayerSpec inner) -> LayerSpec {
      ResidualSpec residual{{LayerNormSpec{.epsilon = kEpsilon}, std::move(inner)}};
      if (spec.dropout > 0) residual.layers.push_back(DropoutSpec{.rate = spec.dropout});
      return residual;
    };
    const AttentionSpec attention{
        .heads = spec.heads, .dropout = spec.attention_dropout, .causal = false};
    const MlpSpec mlp{.hidden = spec.hidden == 0 ? 4 * spec.width : spec.hidden,
                      .exact_gelu = true,
                      .dropout = spec.dropout};
    return {branch(attention), branch(mlp)};
  }

  using Outputs = absl::StatusOr<std::vector<ValueId>>;
  static ValueId Shaped(ValueId x, std::vector<int64_t> shape, LayerWriter& writer) {
    const ReshapeAttributes attributes{std::move(shape)};
    return writer.Emit("reshape", ToAttributes(attributes), {x})[0];
  }

  // Initial values are torchvision's.
  static Outputs WriteEmbedding(const VitSpec& spec, ValueId images, const std::string& path,
                                LayerBuilder& layer) {
    const LayerPlace place{.path = path};
    const int64_t channels = spec.image[2], patch = spec.patch;
    const int64_t patches = spec.image[0] / patch * (spec.image[1] / patch);
    const double stddev = std::sqrt(1.0 / static_cast<double>(patch * patch * channels));
    const ValueId weight =
        layer.Weight(place, "patch.weight", {spec.width, patch, patch, channels}, stddev);
    const ValueId bias = layer.Bias(place, "patch.bias", {spec.width});
    const ValueId token = layer.Bias(place, "class_token", {spec.width});
    const ValueId position =
        layer.Weight(place, "position", {patches + 1, spec.width}, kInitStddev);
    LayerWriter& writer = layer.writer();
    const ConvolutionAttributes attributes{.steps = {.stride = {patch, patch}}, .bias = true};
    ValueId x = writer.Emit("convolution", ToAttributes(attributes), {images, weight, bias})[0];
    x = Shaped(x, {patches, spec.width}, writer);
    x = writer.Emit("prepend_token", {}, {x, token, position})[0];
    if (spec.dropout > 0) {
      ASSIGN_OR_RETURN(x, BuildLayer(DropoutSpec{.rate = spec.dropout}, x, place, layer));
    }
    return std::vector<ValueId>{x};
  }

  // Nobody reads the other rows, so they are not normalized either.
  static Outputs WriteHead(const VitSpec& spec, ValueId x, const std::string& path,
                           LayerBuilder& layer) {
    LayerWriter& writer = layer.writer();
    const int64_t rows = writer.type(x).shape[0];
    x = Shaped(x, {rows, 1, spec.width}, writer);
    x = writer.Emit("pad", ToAttributes(PadAttributes{.bottom = 1 - rows}), {x})[0];
    x = Shaped(x, {1, spec.width}, writer);
    ASSIGN_OR_RETURN(x, BuildLayer(LayerNormSpec{.epsilon = kEpsilon}, x,
                                   {.path = path, .prefix = "layer_norm."}, layer));
    ASSIGN_OR_RETURN(x, BuildLayer(LinearSpec{.out = spec.classes}, x,
                                   {.path = path, .prefix = "linear."}, layer));
    return std::vector<ValueId>{Shaped(x, {spec.classes}, writer)};
  }
};

}  // namespace

const NetworkKind* VitNetwork() {
  static const Vit kind;
  return &kind;
}

}  // namespace stagecoach
