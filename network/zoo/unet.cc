#include "network/zoo/unet.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/errors/field_check.h"
#include "base/errors/status.h"
#include "network/layers/convolution.h"
#include "network/layers/norms.h"
#include "network/layers/pools.h"
#include "network/network_builder.h"
#include "network/network_kind.h"
#include "network/zoo/layer_chain.h"
#include "operations/images/convolution.h"
#include "operations/images/upsample.h"

namespace stagecoach {
namespace {

// Writes the layers of one network.
class UnetWriter {
 public:
  UnetWriter(const UnetSpec& spec, std::string path)
      : spec_(spec), path_(std::move(path)), builder_(kInitStddev, {.images = true}) {}

  absl::StatusOr<Network> Run() {
    const Shape image(spec_.image);
    WireId x = builder_.Input("images", ActivationType(image), 0);
    const WireId masks = builder_.Input(
        "masks", {Element::kIds, Leading::kSamples, {image[0], image[1]}}, spec_.channels_out);
    std::vector<WireId> skips;
    for (int64_t i = 0; i < spec_.depth; ++i) {
      ASSIGN_OR_RETURN(x, AddEncoder("encoder", {.inner = Channels(i), .last = Channels(i)}, x,
                                     /*pools=*/i > 0));
      skips.push_back(x);
    }
    const Cell bottom{.inner = Channels(spec_.depth), .last = Channels(spec_.depth - Halves())};
    ASSIGN_OR_RETURN(x, AddEncoder("bottom", bottom, x, /*pools=*/true));
    for (int64_t i = spec_.depth - 1; i >= 0; --i) {
      ASSIGN_OR_RETURN(x, AddDecoder(i, x, skips[static_cast<size_t>(i)]));
    }
    ASSIGN_OR_RETURN(x, AddHead(x));
    return builder_.Finish({.output = x, .targets = masks}, path_);
  }

 private:
  // What the convolutions of a cell give.
  struct Cell {
    int64_t inner = 0, last = 0;
  };
  using Values = std::vector<ValueId>;
  using Outputs = absl::StatusOr<Values>;

  // Of level i; of -1 half of the first one's.
  int64_t Channels(int64_t i) const { return i < 0 ? spec_.base / 2 : spec_.base << i; }
  // By how many levels a cell's last convolution goes up, where upsampling does not change the
  // channels.
  int64_t Halves() const { return spec_.upsample == UnetUpsample::kNearest ? 1 : 0; }

  absl::StatusOr<ValueId> Write(const LayerSpec& piece, const std::string& name, ValueId x,
                                LayerBuilder& layer) const {
    return BuildLayer(piece, x, {.path = path_, .prefix = name + "."}, layer);
  }

  absl::StatusOr<ValueId> WriteCell(const Cell& cell, ValueId x, LayerBuilder& layer) const {
    const bool norms = spec_.norm == UnetNorm::kBatch;
    for (int64_t i = 0; i < spec_.convolutions; ++i) {
      const std::string name = absl::StrCat("c", i, ".");
      const ConvolutionSpec convolution{.out = i + 1 < spec_.convolutions ? cell.inner : cell.last,
                                        .kernel = {3},
                                        .padding = {1},
                                        .bias = !norms};
      ASSIGN_OR_RETURN(x, Write(convolution, name + "convolution", x, layer));
      if (norms) {
        ASSIGN_OR_RETURN(x, Write(BatchNormSpec{}, name + "batch_norm", x, layer));
      }
      x = layer.writer().Emit("relu", {}, {x})[0];
    }
    return x;
  }

  std::string FunctionOf(const char* label, const Cell& cell) const {
    return absl::StrCat("unet_", label, ":", cell.inner, ":", cell.last, ":", spec_.convolutions,
                        spec_.norm == UnetNorm::kBatch ? "" : ":no_norm");
  }

  absl::StatusOr<WireId> AddEncoder(const char* label, const Cell& cell, WireId from, bool pools) {
    const auto write = [&](const Values& in, LayerBuilder& layer) -> Outputs {
      ValueId x = in[0];
      if (pools) {
        ASSIGN_OR_RETURN(x, Write(MaxPoolSpec{.kernel = {2}}, "max_pool", x, layer));
      }
      ASSIGN_OR_RETURN(x, WriteCell(cell, x, layer));
      return Values{x};
    };
    ASSIGN_OR_RETURN(const std::vector<WireId> made,
                     builder_.Add({label, FunctionOf(label, cell), path_}, {from}, write));
    return made[0];
  }

  absl::StatusOr<WireId> AddDecoder(int64_t level, WireId from, WireId skip) {
    const int64_t out = Channels(level - Halves());
    const Cell cell{.inner = out, .last = out};
    const auto write = [&](const Values& in, LayerBuilder& layer) -> Outputs {
      const ValueId up = Upsampled(level, in[0], layer);
      ValueId x = layer.writer().Emit("concatenate", {}, {in[1], up})[0];
      ASSIGN_OR_RETURN(x, WriteCell(cell, x, layer));
      return Values{x};
    };
    const std::string function =
        absl::StrCat(FunctionOf("decoder", cell),
                     spec_.upsample == UnetUpsample::kNearest ? ":nearest" : ":transposed");
    ASSIGN_OR_RETURN(const std::vector<WireId> made,
                     builder_.Add({"decoder", function, path_}, {from, skip}, write));
    return made[0];
  }

  ValueId Upsampled(int64_t level, ValueId x, LayerBuilder& layer) const {
    if (spec_.upsample == UnetUpsample::kNearest) {
      return layer.writer().Emit("upsample", ToAttributes(UpsampleAttributes{}), {x})[0];
    }
    const ValueType image = layer.writer().type(x);
    const int64_t in = image.shape[2];
    const ValueId weight =
        layer.Weight({.path = path_}, "up.weight", {in, 2, 2, Channels(level)}, HeStddev(in));
    const ConvolutionInputGradientAttributes attributes{
        .steps = {.stride = {2, 2}}, .image = {2 * image.shape[0], 2 * image.shape[1]}};
    return layer.writer().Emit("transposed_convolution", ToAttributes(attributes), {x, weight})[0];
  }

  absl::StatusOr<WireId> AddHead(WireId from) {
    const ConvolutionSpec convolution{.out = spec_.channels_out, .kernel = {1}};
    const auto write = [&](const Values& in, LayerBuilder& layer) -> Outputs {
      ASSIGN_OR_RETURN(const ValueId y, Write(convolution, "convolution", in[0], layer));
      return Values{y};
    };
    ASSIGN_OR_RETURN(const std::vector<WireId> made,
                     builder_.Add({"head", "unet_head", path_}, {from}, write));
    return made[0];
  }

  const UnetSpec spec_;
  const std::string path_;
  NetworkBuilder builder_;
};

class Unet final : public NetworkKindOf<UnetSpec> {
  absl::StatusOr<Network> Write(const UnetSpec& spec, const std::string& path) const override {
    RETURN_IF_ERROR(CheckImageShape({spec.image, spec.channels_out}, path));
    const int64_t unit = int64_t{1} << spec.depth;
    if (spec.image[0] % unit != 0 || spec.image[1] % unit != 0) {
      return FieldError(
          path + ".image", absl::StrCat(spec.image[0], "x", spec.image[1]),
          absl::StrCat("is halved ", spec.depth,
                       " times; give a height and a width that are multiples of ", unit));
    }
    if (spec.base > kMaxWidth / unit) {
      return FieldError(path + ".base", absl::StrCat(spec.base),
                        absl::StrCat("must be <= ", kMaxWidth / unit, " with depth ", spec.depth,
                                     ": it is doubled with each level"));
    }
    if (spec.upsample == UnetUpsample::kNearest && spec.base % 2 != 0) {
      return FieldError(path + ".base", absl::StrCat(spec.base),
                        "must be even with upsample nearest: the last cell gives half as many");
    }
    return UnetWriter(spec, path).Run();
  }
};

}  // namespace

const NetworkKind* UnetNetwork() {
  static const Unet kind;
  return &kind;
}

}  // namespace stagecoach
